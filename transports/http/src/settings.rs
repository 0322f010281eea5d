//! The transport's own settings, with the chosen driver's beside them.

use capsule_api::{
    DriverDescriptor, Error, HumanDuration, Registry,
    serde_json::{Map, Value, json},
};
use serde::Deserialize;

use crate::{
    codes,
    meter::{Allowance, Prices},
    retry::Policy,
};

pub(crate) const EXAMPLE: &str = "\
transport: http
driver: anthropic
model: claude-sonnet-4-5
api_key: ${ANTHROPIC_API_KEY}
";

/// The keys of this transport.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Own {
    pub(crate) driver: String,
    #[serde(default)]
    pub(crate) retry: RetrySettings,
    #[serde(default = "five_minutes")]
    pub(crate) idle_timeout: HumanDuration,
    #[serde(default = "sixteen")]
    pub(crate) parallel_calls: usize,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    pub(crate) prices: Option<Prices>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_session_tokens: Option<u64>,
    pub(crate) wall_clock: Option<HumanDuration>,
    #[serde(default = "five")]
    pub(crate) same_failure: u32,
}

impl Own {
    /// What a conversation may use.
    ///
    /// # Errors
    /// A limit on cost, and tokens without a price.
    pub(crate) fn allowance(&self) -> Result<Allowance, Error> {
        let priced = self.prices.is_some_and(|prices| prices.is_complete());
        if self.max_cost.is_some() && !priced {
            let message = "`max_cost`: the cost is known only where `prices` has a price for every kind of token";
            return Err(Error::new(&codes::PRICES_MISSING, message));
        }
        Ok(Allowance {
            tokens: self.max_session_tokens,
            cost_micros: self.max_cost.map(|cost| (cost * 1e6).round() as u64),
            prices: self.prices,
        })
    }
}

/// The key `retry`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetrySettings {
    pub(crate) max_retries: u32,
    pub(crate) initial_delay: HumanDuration,
    pub(crate) max_delay: HumanDuration,
    pub(crate) max_elapsed: HumanDuration,
}

impl RetrySettings {
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            max_retries: self.max_retries,
            initial_delay: self.initial_delay.0,
            max_delay: self.max_delay.0,
            max_elapsed: self.max_elapsed.0,
        }
    }
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_retries: 6,
            initial_delay: HumanDuration(std::time::Duration::from_secs(1)),
            max_delay: HumanDuration(std::time::Duration::from_secs(60)),
            max_elapsed: HumanDuration(std::time::Duration::from_secs(600)),
        }
    }
}

fn five_minutes() -> HumanDuration {
    HumanDuration(std::time::Duration::from_secs(300))
}

fn sixteen() -> usize {
    16
}

fn five() -> u32 {
    5
}

fn duration(default: &str, description: &str) -> Value {
    let mut schema = HumanDuration::schema();
    schema["default"] = json!(default);
    schema["description"] = json!(description);
    schema
}

fn price(description: &str) -> Value {
    json!({"type": "number", "minimum": 0, "description": description})
}

/// The keys that end a turn, and those that tell what it cost.
fn limits() -> Value {
    let mut wall = HumanDuration::schema();
    wall["description"] = json!(
        "The longest that a turn may take, without the time in which tools wait for an answer of the caller. No limit without it."
    );
    json!({
        "max_session_tokens": {
            "type": "integer", "minimum": 1,
            "description": "Tokens of every kind that the whole conversation may use. Once they are used, nothing more is asked. No limit without it."
        },
        "wall_clock": wall,
        "same_failure": {
            "type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 5,
            "description": "How often in a row the same tool may fail with the same arguments."
        },
        "prices": {
            "type": "object",
            "required": ["input", "output"],
            "additionalProperties": false,
            "description": "Prices per million tokens, in a currency of your choice. Without them no cost is told.",
            "properties": {
                "input": price("Input tokens that were neither read from nor written to the provider's cache."),
                "output": price("Output tokens, also those of reasoning."),
                "cache_read": price("Input tokens read from the cache. Without it the cost of a turn that has such tokens is not told."),
                "cache_write": price("Input tokens written to the cache. Without it the cost of a turn that has such tokens is not told.")
            }
        },
        "max_cost": {
            "type": "number", "exclusiveMinimum": 0,
            "description": "What the whole conversation may cost, in the currency of `prices`, which must then have all four. Once it is spent, nothing more is asked."
        }
    })
}

/// Schema of the keys that are not a driver's.
pub(crate) fn own_schema() -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["driver"],
        "properties": {
            "driver": {"type": "string", "description": "The driver: which provider's API is spoken."},
            "retry": {
                "type": "object",
                "description": "What happens when a model request fails in a way that may pass.",
                "additionalProperties": false,
                "properties": {
                    "max_retries": {
                        "type": "integer", "minimum": 0, "maximum": 100, "default": 6,
                        "description": "Tries after the first."
                    },
                    "initial_delay": duration("1s", "Upper end of the first delay; it doubles with each try."),
                    "max_delay": duration("60s", "The longest delay, also where the provider asks for more."),
                    "max_elapsed": duration("10m", "From the first failure of a request to the start of its last try, at most. A provider that asks for more ends the tries at once.")
                }
            },
            "idle_timeout": duration("5m", "The longest silence of the provider: before its answer and within it. Pings end a silence; an answer that has not grown for ten times as long is given up."),
            "parallel_calls": {
                "type": "integer", "minimum": 1, "maximum": 256, "default": 16,
                "description": "Tool calls of one answer that run at the same time, at most."
            },
            "params": {
                "type": "object",
                "description": "Parameters of the provider, such as `temperature`, added to each request as they are."
            }
        },
        "additionalProperties": false
    });
    if let (Some(into), Value::Object(limits)) = (schema["properties"].as_object_mut(), limits()) {
        into.extend(limits);
    }
    schema
}

/// Schema of this transport's settings. Given the settings, the chosen driver's keys are required as that driver says.
///
/// Keys of other linked drivers are allowed and not read, so that `--driver cassette` works on a manifest that has another driver's key.
pub(crate) fn schema(settings: Option<&Value>) -> Value {
    let mut schema = own_schema();
    let Ok(drivers) = Registry::<DriverDescriptor>::linked() else {
        return schema;
    };
    schema["properties"]["driver"]["enum"] = drivers.names().collect();
    let chosen = settings.and_then(|settings| settings["driver"].as_str());
    if let Some(driver) = drivers.iter().find(|driver| Some(driver.name) == chosen) {
        let mut own = (driver.settings_schema)();
        name_the_driver(&mut own, driver);
        graft(&mut schema, &own, true);
    }
    for driver in drivers.iter().filter(|driver| Some(driver.name) != chosen) {
        graft(&mut schema, &(driver.settings_schema)(), false);
    }
    schema
}

/// Says of each key that the driver requires that it is the driver's, and how its example writes it: for who forgets one.
fn name_the_driver(schema: &mut Value, driver: &DriverDescriptor) {
    let required: Vec<String> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|key| key.as_str().map(str::to_owned))
        .collect();
    for key in required {
        let Some(property) = schema["properties"].get_mut(&key) else {
            continue;
        };
        property["x-needed-by"] = json!(format!("the driver `{}`", driver.name));
        let mut lines = driver.example.lines();
        if let Some(value) = lines.find_map(|line| line.strip_prefix(&key)?.strip_prefix(": ")) {
            property["examples"] = json!([value]);
        }
    }
}

/// Adds a driver's keys. A key that is there already stays as it is.
fn graft(schema: &mut Value, driver: &Value, required: bool) {
    if let (Some(into), Some(from)) = (schema["properties"].as_object_mut(), driver["properties"].as_object()) {
        for (key, property) in from {
            into.entry(key.clone()).or_insert_with(|| property.clone());
        }
    }
    if let (true, Some(into), Some(from)) = (
        required,
        schema["required"].as_array_mut(),
        driver["required"].as_array(),
    ) {
        into.extend(from.iter().cloned());
    }
}
