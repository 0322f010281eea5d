//! Real CLIs and official SDKs against the scripted provider.
