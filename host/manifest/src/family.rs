//! One name for all transports of a family: `transport: process` stands for every command-line agent.

use capsule_api::{Registry, TransportDescriptor};
use serde_json::{Map, Value, json};

use crate::schema::TransportSchemas;

/// The setting of a family that names one of its members. No member is given it.
pub const DIALECT: &str = "dialect";

/// The linked transports, and one name that stands for all of a family.
///
/// The family's settings are the keys that every member has, and [`DIALECT`]. So a third party's transport of the family is a member by
/// being linked.
#[derive(Debug)]
pub struct Transports {
    registry: Registry<TransportDescriptor>,
    name: &'static str,
    family: &'static str,
}

impl Transports {
    /// These transports; `name` stands for those whose descriptor says `family`.
    pub fn new(registry: Registry<TransportDescriptor>, name: &'static str, family: &'static str) -> Self {
        Self { registry, name, family }
    }

    /// The transports themselves.
    pub fn registry(&self) -> &Registry<TransportDescriptor> {
        &self.registry
    }

    /// The name that stands for the family.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The members of the family, sorted by name.
    pub fn family(&self) -> impl Iterator<Item = &'static TransportDescriptor> + '_ {
        self.registry
            .iter()
            .filter(|transport| transport.family == self.family && transport.name != self.name)
    }
}

impl TransportSchemas for Transports {
    fn schema(&self, name: &str, settings: Option<&Value>) -> Option<Value> {
        // A transport that is registered under the family's name goes first.
        if let Some(own) = self.registry.schema(name, settings) {
            return Some(own);
        }
        let members = self.members(name);
        if members.is_empty() {
            return None;
        }
        let schemas: Vec<_> = self.family().map(|member| (member.settings_schema)(settings)).collect();
        Some(shared(&members, &schemas, settings))
    }

    fn names(&self) -> Vec<String> {
        let mut names = Registry::names(&self.registry).map(str::to_owned).collect::<Vec<_>>();
        if self.family().next().is_some() && !names.iter().any(|name| name == self.name) {
            names.push(self.name.to_owned());
            names.sort();
        }
        names
    }

    fn members(&self, name: &str) -> Vec<String> {
        let registered = self.registry.iter().any(|transport| transport.name == name);
        if name != self.name || registered {
            return Vec::new();
        }
        self.family().map(|member| member.name.to_owned()).collect()
    }
}

/// The schema of a family's settings, made of its members'. It is the wider one where they differ: the settings are held against the
/// schema of the member that runs as well.
fn shared(members: &[String], schemas: &[Value], settings: Option<&Value>) -> Value {
    let mut properties = Map::new();
    let Some((first, others)) = schemas.split_first() else {
        return json!({});
    };
    for (key, property) in first["properties"].as_object().into_iter().flatten() {
        let same: Option<Vec<&Value>> = others.iter().map(|other| other["properties"].get(key)).collect();
        if let Some(same) = same {
            properties.insert(key.clone(), widest(property, &same));
        }
    }
    let names_one = |settings: &Value| settings.get("command").is_some() || settings.get(DIALECT).is_some();
    if settings.is_some_and(|settings| !names_one(settings)) {
        // A key is one provider's. Which program gets it must not depend on what happens to be installed.
        properties.retain(|_, property| property["writeOnly"] != true);
    }
    let dialect = json!({
        "type": "string",
        "enum": members,
        "description": "Which of the transports talks to the program. Without it, what the program prints for `--version` decides, or else its file name.",
    });
    properties.insert(DIALECT.to_owned(), dialect);
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// A property that takes what any of the members takes.
fn widest(first: &Value, others: &[&Value]) -> Value {
    let all = || std::iter::once(first).chain(others.iter().copied());
    // References lead into the member's own schema.
    let behind = all().any(|property| property.to_string().contains("\"$ref\""));
    let mut wide = Map::new();
    for (key, value) in first.as_object().into_iter().flatten() {
        if !behind && others.iter().all(|other| other.get(key) == Some(value)) {
            wide.insert(key.clone(), value.clone());
        }
    }
    if !behind && all().all(|property| property["enum"].is_array()) {
        let mut options: Vec<Value> = Vec::new();
        for option in all().filter_map(|property| property["enum"].as_array()).flatten() {
            if !options.contains(option) {
                options.push(option.clone());
            }
        }
        wide.insert("enum".to_owned(), options.into());
    }
    if behind || all().any(|property| property["writeOnly"] == true) {
        wide.insert("writeOnly".to_owned(), true.into());
    }
    wide.entry("description")
        .or_insert_with(|| "As the transport that is chosen has it.".into());
    Value::Object(wide)
}
