//! Transport http: the host owns the agent loop and talks to a provider through a driver.
