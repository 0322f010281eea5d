//! From a path to a valid manifest, or to all that is wrong with it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use capsule_api::nearest;
use serde_json::{Map, Value};

use crate::{
    checks, codes,
    family::DIALECT,
    files::{self, Unreadable},
    loaded::Loaded,
    manifest::Manifest,
    overrides::Override,
    places::{self, Places},
    report::{Origin, Problem, Report},
    schema::{self, COMMON_KEYS, TransportSchemas},
    tree::{self, Broken, Position, child},
    violations::{self, Teller},
};

/// The manifest's name inside a capsule's directory.
pub const FILE_NAME: &str = "capsule.yaml";

/// How much of `inference` a manifest is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// The transport to run on has all that it needs.
    #[default]
    Whole,
    /// The keys that are there are right; some may be missing.
    Keys,
    /// It is not read at all: nothing asks a model.
    Unread,
}

/// What a manifest is read with.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The schemas of the transports there are.
    pub schemas: &'a dyn TransportSchemas,
    /// The transport of a manifest that names none.
    pub default_transport: &'a str,
    /// The transport to run on in place of the manifest's (`--transport`).
    pub transport: Option<&'a str>,
    /// The member to run on, where that transport stands for a family ([`TransportSchemas::members`]) and the member is known.
    pub member: Option<&'a str>,
    /// The model to ask for in place of the manifest's, on whatever transport (`--model`).
    pub model: Option<&'a str>,
    /// Values in place of the file's (`--set`), in order.
    pub overrides: &'a [Override],
    /// How much of `inference` has to be right.
    pub held_to: Model,
}

impl<'a> Options<'a> {
    /// Reads the manifest as it is.
    pub fn new(schemas: &'a dyn TransportSchemas, default_transport: &'a str) -> Self {
        Self {
            schemas,
            default_transport,
            transport: None,
            member: None,
            model: None,
            overrides: &[],
            held_to: Model::default(),
        }
    }
}

/// Reads a manifest: a file, or a directory with a `capsule.yaml`. Blocks on the file system; reads no variable and no other file.
///
/// # Errors
/// Everything that is wrong with the file and with the overrides, at once.
pub fn load(path: &Path, options: &Options<'_>) -> Result<Loaded, Report> {
    let file = if path.is_dir() {
        path.join(FILE_NAME)
    } else {
        path.to_owned()
    };
    let text = files::read(&file).map_err(|error| unreadable(&file, &error))?;
    parse(&file, &text, options)
}

fn unreadable(file: &Path, error: &Unreadable) -> Report {
    let code = match error {
        Unreadable::Missing => &codes::MISSING,
        _ => &codes::UNREADABLE,
    };
    let mut problem = Problem::new(code, Origin::File, error.to_string());
    if let Unreadable::NotText { line, column } = *error {
        problem.origin = Origin::Line(Position { line, column });
    }
    Report::new(file, vec![problem])
}

/// Reads the text of a manifest that is, or would be, in `file`.
///
/// # Errors
/// As for [`load`].
pub fn parse(file: &Path, text: &str, options: &Options<'_>) -> Result<Loaded, Report> {
    let mut tree = tree::parse(text).map_err(|broken| syntax(file, text, broken))?;
    let root = std::mem::take(&mut tree.value);
    if root.is_null() {
        return Err(Report::one(
            file,
            &codes::INVALID,
            "the manifest is empty; it needs at least `name` and `version`",
        ));
    }
    if !root.is_object() {
        let message = "a manifest is a mapping that begins with a line such as `name: my-capsule`";
        return Err(Report::one(file, &codes::INVALID, message));
    }
    let mut problems = checks::duplicates(&tree.duplicates);
    let mut draft = Draft {
        root,
        places: Places::new(tree, text),
        options,
    };
    problems.extend(draft.apply_overrides());
    draft.forget_unread();
    let own_schemas = draft.own_schemas();
    let (violations, hidden) = draft.validate(&own_schemas);
    problems.extend(violations);
    // A script runs without a model, so no transport needs to be whole.
    if options.held_to == Model::Whole && draft.root["script"].is_null() {
        problems.extend(draft.validate_selected(&own_schemas));
    }
    let mut more = checks::problems(&draft.root, &draft.places);
    more.retain(|one| !problems.iter().any(|told| told.key == one.key));
    problems.extend(more);
    if !problems.is_empty() {
        draft.places.excerpt(&mut problems, &hidden);
        return Err(Report::new(file, problems));
    }
    draft.finish(file)
}

/// The text is no tree, so nobody knows whether the line holds a secret: no more of it is shown than a key that manifests have.
fn syntax(file: &Path, text: &str, broken: Broken) -> Report {
    let origin = broken.at.map_or(Origin::File, Origin::Line);
    let mut problem = Problem::new(&codes::SYNTAX, origin, broken.message);
    let line = broken
        .at
        .and_then(|at| text.lines().nth(usize::try_from(at.line - 1).ok()?));
    let base = schema::base(&[], "");
    let in_section = |section: &str, key: &str| base["properties"][section]["properties"].get(key).is_some();
    let is_known = |key: &str| {
        let sections = ["inference", "capabilities", "context", "trace"];
        base["properties"].get(key).is_some() || sections.iter().any(|section| in_section(section, key))
    };
    problem.excerpt = line.and_then(|line| places::known_key(line, is_known));
    Report::new(file, vec![problem])
}

/// A manifest on its way to be valid.
struct Draft<'a> {
    root: Value,
    places: Places,
    options: &'a Options<'a>,
}

/// The schema of one transport for the settings that the manifest gives it.
struct OwnSchema {
    name: String,
    schema: Value,
}

/// Which keys there are, and where.
struct Known {
    sections: Vec<(&'static str, Vec<String>)>,
    transports: Vec<(String, Vec<String>)>,
}

impl Draft<'_> {
    fn apply_overrides(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for one in self.options.overrides {
            let (named, selected) = (self.named().to_owned(), self.asked().to_owned());
            if let Err(why) = one.apply(&mut self.root, &mut self.places, (&named, &selected)) {
                problems.push(Problem::new(&codes::INVALID, Origin::Flag(one.flag().to_owned()), why));
            }
        }
        if self.options.model == Some("") {
            let flag = Origin::Flag("--model".to_owned());
            problems.push(Problem::new(&codes::INVALID, flag, "expected the name of a model"));
        }
        problems
    }

    /// Takes out what is not to be read.
    fn forget_unread(&mut self) {
        if let (Model::Unread, Some(root)) = (self.options.held_to, self.root.as_object_mut()) {
            root.shift_remove("inference");
        }
    }

    /// The transport whose settings stand beside the common keys.
    fn named(&self) -> &str {
        self.root["inference"]["transport"]
            .as_str()
            .unwrap_or(self.options.default_transport)
    }

    /// The transport that the flag or the file asks for; it may stand for a family.
    fn asked(&self) -> &str {
        self.options.transport.unwrap_or_else(|| self.named())
    }

    /// The transport to run on.
    fn selected(&self) -> &str {
        self.options.member.unwrap_or_else(|| self.asked())
    }

    /// The family through which this transport was asked for.
    fn family_of(&self, name: &str) -> Option<&str> {
        let asked = self.asked();
        let members = self.options.schemas.members(asked);
        members.iter().any(|member| member == name).then_some(asked)
    }

    fn block(&self, name: &str) -> Option<&Map<String, Value>> {
        self.root["inference"]["transports"].get(name)?.as_object()
    }

    /// What the transport is given: the flat keys if the file names it or its family, under those of its blocks. The common keys are left
    /// in; a schema that does not speak of them does not mind.
    fn settings(&self, name: &str) -> Map<String, Value> {
        let family = self.family_of(name);
        let flat = name == self.named() || family == Some(self.named());
        let mut settings = Map::new();
        for (key, value) in self.root["inference"].as_object().into_iter().flatten() {
            let for_all = COMMON_KEYS.contains(&key.as_str());
            if for_all || (flat && key != "transport" && key != "transports") {
                settings.insert(key.clone(), value.clone());
            }
        }
        if let Some(family) = family {
            settings.extend(self.block(family).cloned().unwrap_or_default());
            settings.shift_remove(DIALECT);
        }
        settings.extend(self.block(name).cloned().unwrap_or_default());
        settings
    }

    /// The schemas of the named and the selected transport and of those with a block of their own, as far as they exist.
    fn own_schemas(&self) -> Vec<OwnSchema> {
        let blocks = self.root["inference"]["transports"].as_object().into_iter().flatten();
        let mut names: Vec<&str> = blocks.map(|(name, _)| name.as_str()).collect();
        for name in [self.named(), self.asked(), self.selected()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let own = |name: &str| {
            let settings = Value::Object(self.settings(name));
            let schema = self.options.schemas.schema(name, Some(&settings))?;
            Some(OwnSchema {
                name: name.to_owned(),
                schema,
            })
        };
        names.into_iter().filter_map(own).collect()
    }

    /// The file against the schema, each transport's keys against its owner's. Also gives the pointers that no excerpt may show.
    fn validate(&self, own: &[OwnSchema]) -> (Vec<Problem>, BTreeSet<String>) {
        let flat = own
            .iter()
            .find(|one| one.name == self.named())
            .map(|one| (one.name.as_str(), one.schema.clone()));
        let nobody = flat.is_none();
        let blocks = own.iter().map(|one| (one.name.as_str(), one.schema.clone())).collect();
        let schema = schema::for_file(self.options.schemas, self.options.default_transport, flat, blocks);
        let known = self.known();
        let elsewhere = |pointer: &str, key: &str| self.elsewhere(&known, pointer, key);
        let teller = Teller {
            schema: &schema,
            places: &self.places,
            in_file: &str::to_owned,
            elsewhere: &elsewhere,
            needed_by: None,
        };
        let (problems, unknown) = match teller.problems(&self.root) {
            Ok(told) => told,
            Err(why) => return (vec![self.bad_schema(&why)], BTreeSet::from([String::new()])),
        };
        let mut hidden = BTreeSet::from_iter(violations::secrets(&schema, &self.root));
        hidden.extend(unknown);
        if nobody {
            // Which of its keys are secret, only the transport could say.
            let keys = self.root["inference"].as_object().into_iter().flatten();
            let own = keys.filter(|(key, _)| *key != "transport" && !COMMON_KEYS.contains(&key.as_str()));
            hidden.extend(own.map(|(key, _)| child("/inference", key)));
        }
        (problems, hidden)
    }

    /// The selected transport's settings, flat keys and block together, against its whole schema: what is required may stand in either.
    fn validate_selected(&self, own: &[OwnSchema]) -> Vec<Problem> {
        let name = self.selected();
        let Some(OwnSchema { schema, .. }) = own.iter().find(|one| one.name == name) else {
            return self.no_such_transport(name);
        };
        // Unknown keys were told of where they stand.
        let mut schema = schema.clone();
        if let Some(parts) = schema.as_object_mut() {
            parts.shift_remove("additionalProperties");
            parts.shift_remove("unevaluatedProperties");
        }
        let in_file = |pointer: &str| self.in_file(name, pointer);
        let teller = Teller {
            schema: &schema,
            places: &self.places,
            in_file: &in_file,
            elsewhere: &|_, _| None,
            needed_by: Some(name),
        };
        match teller.problems(&Value::Object(self.settings(name))) {
            Ok((problems, _)) => problems,
            Err(why) => vec![self.bad_schema(&why)],
        }
    }

    /// The place in the file of a setting of this transport: its own block, its family's, or beside the common keys.
    fn in_file(&self, name: &str, pointer: &str) -> String {
        let key = tree::parts(pointer).next();
        let has = |owner: &&str| match (self.block(owner), &key) {
            (Some(block), Some(key)) => block.contains_key(key),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let owners = [Some(name), self.family_of(name)];
        let block = owners.into_iter().flatten().find(has);
        let block = block.map_or_else(
            || "/inference".to_owned(),
            |owner| child("/inference/transports", owner),
        );
        format!("{block}{pointer}")
    }

    fn no_such_transport(&self, name: &str) -> Vec<Problem> {
        if self.options.transport.is_none() {
            // The schema's list of names has told.
            return Vec::new();
        }
        let names = self.options.schemas.names();
        let message = format!("no transport is called {name:?}; there are {}", names.join(", "));
        let mut problem = Problem::new(&codes::INVALID, Origin::Flag("--transport".to_owned()), message);
        problem.hint = nearest(name, names.iter().map(String::as_str)).map(|near| format!("Did you mean `{near}`?"));
        vec![problem]
    }

    fn bad_schema(&self, why: &str) -> Problem {
        let message = format!(
            "the settings of a transport ({}) are described wrongly: {why}",
            self.selected()
        );
        Problem::new(&codes::SCHEMA, Origin::File, message)
    }

    /// The keys of each section and of each transport, to tell where an unknown one belongs.
    fn known(&self) -> Known {
        let schemas = self.options.schemas;
        let keys = |schema: &Value| {
            let properties = schema["properties"].as_object();
            properties.into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let names = schemas.names();
        let base = schema::base(&names, self.options.default_transport);
        let sections = ["inference", "capabilities", "trace"];
        Known {
            sections: sections.map(|name| (name, keys(&base["properties"][name]))).into(),
            transports: names
                .into_iter()
                .map(|name| {
                    let own = schemas.schema(&name, None).unwrap_or_default();
                    (name, keys(&own))
                })
                .collect(),
        }
    }

    /// Where an unknown key would be known.
    fn elsewhere(&self, known: &Known, pointer: &str, key: &str) -> Option<String> {
        let has = |keys: &[String]| keys.iter().any(|one| one == key);
        if pointer == child("/inference/transports", key) {
            let names: Vec<_> = known.transports.iter().map(|(name, _)| name.as_str()).collect();
            return Some(format!(
                "No transport is called {key:?}; there are {}.",
                names.join(", ")
            ));
        }
        if pointer == child("/inference", key) {
            let named = self.named();
            let (owner, _) = known
                .transports
                .iter()
                .find(|(name, keys)| name != named && has(keys))?;
            let family = known.transports.iter().find(|(name, _)| name == named);
            if family.is_some_and(|(_, keys)| keys.iter().any(|one| one == DIALECT) && has(keys)) {
                return Some(format!(
                    "It is for one provider, so name the program too (`command` or `{DIALECT}`), or write it as `inference.transports.{owner}.{key}`."
                ));
            }
            return Some(format!(
                "`{key}` is a setting of the transport `{owner}`, not of `{named}`; write it as `inference.transports.{owner}.{key}`."
            ));
        }
        let outside = |section: &str| !pointer.starts_with(&format!("/{section}/"));
        let (section, _) = known
            .sections
            .iter()
            .find(|(section, keys)| outside(section) && has(keys))?;
        Some(format!(
            "`{key}` is a key of `{section}`; indent it below `{section}:`."
        ))
    }

    fn finish(self, file: &Path) -> Result<Loaded, Report> {
        let warnings = checks::warnings(&self.root, &self.places);
        let mut places = self.places;
        if self.options.model.is_some() {
            places.set_by_flag("/inference/model", "--model");
        }
        let mut root = self.root;
        whole_numbers(&mut root);
        // The schema let it pass, so a failure is a fault of the schema; it is told like any other problem.
        let manifest: Manifest = serde_json::from_value(root).map_err(|error| {
            Report::one(
                file,
                &codes::SCHEMA,
                format!("the manifest fits its schema and still cannot be read: {error}"),
            )
        })?;
        let named = manifest
            .inference
            .transport
            .clone()
            .unwrap_or_else(|| self.options.default_transport.to_owned());
        let asked = self.options.transport.map_or_else(|| named.clone(), str::to_owned);
        Ok(Loaded {
            selected: self.options.member.map_or_else(|| asked.clone(), str::to_owned),
            asked,
            named,
            model: self.options.model.map(str::to_owned),
            base: base(file),
            file: file.to_owned(),
            manifest,
            warnings,
            places: Arc::new(places.without_text()),
        })
    }
}

fn base(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// JSON Schema takes `50.0` for an integer; serde does not.
fn whole_numbers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < EXACT)
            {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
