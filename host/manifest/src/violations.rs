//! Violations of a schema as problems: in our own words, because a validator's quote values, and some are secret.

use capsule_api::nearest;
use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value;

use crate::{
    codes,
    places::{Places, dotted},
    report::Problem,
    tree::{child, parts},
    words,
};

/// More than a report holds; the rest is not put into words.
const MOST: usize = 1000;

/// What problems are told with.
pub(crate) struct Teller<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) places: &'a Places,
    /// From a pointer into the validated value to one into the file.
    pub(crate) in_file: &'a dyn Fn(&str) -> String,
    /// What an unknown key may be instead: its pointer in the file, its name.
    pub(crate) elsewhere: &'a dyn Fn(&str, &str) -> Option<String>,
    /// Who needs a missing key at the top of the validated value.
    pub(crate) needed_by: Option<&'a str>,
}

/// The part of the schema that a violation speaks of.
struct Spot<'a> {
    schema: &'a Value,
    secret: bool,
}

impl Teller<'_> {
    /// All violations of `value`, and the pointers of its unknown keys.
    pub(crate) fn problems(&self, value: &Value) -> Result<(Vec<Problem>, Vec<String>), String> {
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(self.schema)
            .map_err(|error| error.to_string())?;
        let mut unknown = Vec::new();
        let mut problems = Vec::new();
        for error in validator.iter_errors(value) {
            let pointer = (self.in_file)(error.instance_path().as_str());
            if let Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } = error.kind()
            {
                unknown.extend(unexpected.iter().map(|key| child(&pointer, key)));
            }
            if problems.len() < MOST {
                problems.extend(self.tell(&error));
            }
        }
        Ok((problems, unknown))
    }

    fn tell(&self, error: &ValidationError<'_>) -> Vec<Problem> {
        let instance = error.instance();
        let pointer = (self.in_file)(error.instance_path().as_str());
        let spot = self.spot(error.evaluation_path().as_str());
        if awaits_expansion(error.kind(), instance, &pointer) {
            return Vec::new();
        }
        let at_value = |message: String| vec![self.problem(&pointer, message, false)];
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => unexpected
                .iter()
                .take(MOST)
                .map(|key| self.unknown(&pointer, key, spot.schema))
                .collect(),
            Kind::Required { property } => vec![self.missing(error, &pointer, property, spot.schema)],
            Kind::Not { schema } => vec![self.excluded(&pointer, schema)],
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.none_fits(context, &spot, instance, &pointer)
            }
            Kind::OneOfMultipleValid { .. } => {
                at_value("the keys fit more than one of the allowed forms; leave out those of all but one".to_owned())
            }
            Kind::UniqueItems => at_value("an item is in the list more than once".to_owned()),
            Kind::MinItems { limit } => at_value(format!("expected at least {limit} items")),
            Kind::MaxItems { limit } => at_value(format!("expected at most {limit} items")),
            Kind::MinProperties { limit } => at_value(format!("expected at least {limit} keys")),
            Kind::MaxProperties { limit } => at_value(format!("expected at most {limit} keys")),
            Kind::FalseSchema => vec![self.problem(&pointer, "this key is not allowed here".to_owned(), true)],
            kind => {
                let limits = matches!(kind, Kind::Maximum { .. } | Kind::ExclusiveMaximum { .. });
                let mut problem = self.unfit(&pointer, spot.schema, instance, &spot, limits);
                if matches!(kind, Kind::Type { .. }) {
                    problem.hint = words::quoting(spot.schema, instance);
                }
                vec![problem]
            }
        }
    }

    fn problem(&self, pointer: &str, message: String, at_key: bool) -> Problem {
        let origin = if at_key {
            self.places.key(pointer)
        } else {
            self.places.value(pointer)
        };
        let mut problem = Problem::new(&codes::INVALID, origin, message);
        problem.key = dotted(pointer);
        problem
    }

    fn unfit(&self, pointer: &str, schema: &Value, value: &Value, spot: &Spot<'_>, limits: bool) -> Problem {
        let expected = words::expected(schema, limits);
        let found = words::found(value, spot.secret);
        let mut problem = self.problem(pointer, format!("expected {expected}, found {found}"), false);
        let options = schema["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        if let (false, Some(near)) = (spot.secret, value.as_str().and_then(|text| nearest(text, options))) {
            problem.hint = Some(format!("Did you mean `{near}`?"));
        }
        problem
    }

    fn unknown(&self, above: &str, key: &str, schema: &Value) -> Problem {
        let pointer = child(above, key);
        let shown: String = key.escape_debug().collect();
        let known: Vec<_> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str())
            .collect();
        let mut message = format!("unknown key `{shown}`");
        let mut hint = None;
        if let Some(near) = nearest(key, known.iter().copied()) {
            message.push_str(&format!(", did you mean `{near}`?"));
        } else if let Some(other) = (self.elsewhere)(&pointer, key) {
            hint = Some(other);
        } else if !known.is_empty() {
            hint = Some(format!(
                "The keys here are {}.",
                known
                    .iter()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        let mut problem = self.problem(&pointer, message, true);
        problem.key = dotted(above);
        problem.hint = hint;
        problem
    }

    /// The schema of a setting may say in `x-needed-by` who needs it, where that is a part of the transport, and in `examples` how it is written.
    fn missing(&self, error: &ValidationError<'_>, pointer: &str, property: &Value, schema: &Value) -> Problem {
        let property = property.as_str().unwrap_or_default();
        let transport = self.needed_by.filter(|_| error.instance_path().is_empty());
        let Some(transport) = transport else {
            return self.problem(pointer, format!("the key `{property}` is missing"), true);
        };
        let setting = &schema["properties"][property];
        let needed_by = match setting["x-needed-by"].as_str() {
            Some(part) => part.to_owned(),
            None => format!("the transport `{transport}`"),
        };
        let message = format!("the key `{property}` is missing; {needed_by} needs it");
        let mut problem = self.problem(pointer, message, true);
        problem.hint = how_to_give(&dotted(pointer), property, setting);
        problem
    }

    fn excluded(&self, pointer: &str, schema: &Value) -> Problem {
        let keys: Vec<_> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let Some(last) = keys.last() else {
            return self.problem(pointer, "this form is not allowed".to_owned(), false);
        };
        let names = keys
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(" and ");
        let mut problem = self.problem(
            &child(pointer, last),
            format!("{names} exclude each other; keep one of them"),
            true,
        );
        problem.key = dotted(pointer);
        problem
    }

    /// Of several forms: where one of them has at least the right type, what is wrong with that one; else what all of them expect.
    fn none_fits(
        &self,
        forms: &[Vec<ValidationError<'static>>],
        spot: &Spot<'_>,
        value: &Value,
        pointer: &str,
    ) -> Vec<Problem> {
        let deeper = |errors: &&Vec<ValidationError<'static>>| {
            let wrong = |error: &ValidationError<'_>| {
                matches!(
                    error.kind(),
                    Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. }
                ) && (self.in_file)(error.instance_path().as_str()) == pointer
            };
            !errors.iter().any(wrong)
        };
        let close: Vec<_> = forms.iter().filter(deeper).collect();
        if let [form] = close.as_slice() {
            return form.iter().flat_map(|error| self.tell(error)).collect();
        }
        let schemas = ["anyOf", "oneOf"].iter().find_map(|key| spot.schema[*key].as_array());
        let expected: Vec<_> = schemas
            .into_iter()
            .flatten()
            .map(|form| words::expected(form, false))
            .collect();
        let message = format!(
            "expected {}, found {}",
            expected.join(" or "),
            words::found(value, spot.secret)
        );
        vec![self.problem(pointer, message, false)]
    }

    /// Follows the path of an evaluation, also through references. What lies under a secret is secret.
    fn spot(&self, path: &str) -> Spot<'_> {
        let mut steps: Vec<_> = parts(path).collect();
        steps.pop();
        let mut at = self.schema;
        let mut secret = at["writeOnly"] == true;
        for step in steps {
            at = if step == "$ref" {
                let target = at["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
                target
                    .and_then(|target| self.schema.pointer(target))
                    .unwrap_or(&Value::Null)
            } else {
                match at {
                    Value::Array(items) => step
                        .parse::<usize>()
                        .ok()
                        .and_then(|index| items.get(index))
                        .unwrap_or(&Value::Null),
                    other => &other[step.as_str()],
                }
            };
            secret |= at["writeOnly"] == true;
        }
        // A schema that cannot be followed might have said that the value is secret.
        Spot {
            schema: at,
            secret: secret || at.is_null(),
        }
    }
}

/// How a setting that is missing is given, as far as its schema tells.
fn how_to_give(above: &str, property: &str, setting: &Value) -> Option<String> {
    if let Some(example) = setting["examples"][0].as_str() {
        return Some(format!(
            "For example `{property}: {example}` in the manifest, or `--set '{above}.{property}={example}'`."
        ));
    }
    let names = setting["enum"].as_array()?.iter().filter_map(Value::as_str);
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    Some(format!("It is one of {}.", names.join(", ")))
}

/// A text with `${NAME}` shows only when it is expanded whether it fits; [`capsule_api::Settings::decode`] says so then.
fn awaits_expansion(kind: &Kind, value: &Value, pointer: &str) -> bool {
    let about_text = matches!(
        kind,
        Kind::Pattern { .. }
            | Kind::Enum { .. }
            | Kind::Constant { .. }
            | Kind::Format { .. }
            | Kind::MinLength { .. }
            | Kind::MaxLength { .. }
            | Kind::AnyOf { .. }
            | Kind::OneOfNotValid { .. }
            | Kind::OneOfMultipleValid { .. }
    );
    let has_variable = value.as_str().is_some_and(|text| text.contains("${"));
    about_text && has_variable && pointer.starts_with("/inference/") && pointer != "/inference/transport"
}

/// The pointers of all values that the schema marks as secret.
pub(crate) fn secrets(schema: &Value, value: &Value) -> Vec<String> {
    let mut finder = SecretFinder {
        root: schema,
        found: Vec::new(),
    };
    finder.look(schema, value, "", 0);
    finder.found
}

/// A reference may lead back to itself without coming nearer to a value.
const DEEPEST: usize = 200;

struct SecretFinder<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl SecretFinder<'_> {
    fn look(&mut self, schema: &Value, value: &Value, pointer: &str, depth: usize) {
        if schema["writeOnly"] == true || depth > DEEPEST {
            self.found.push(pointer.to_owned());
            return;
        }
        let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        if let Some(target) = target.and_then(|target| self.root.pointer(target)) {
            self.look(target, value, pointer, depth + 1);
        }
        let forms = ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|key| schema[*key].as_array())
            .flatten();
        let branches = ["if", "then", "else"].iter().filter_map(|key| schema.get(*key));
        for form in forms.chain(branches) {
            self.look(form, value, pointer, depth + 1);
        }
        for (key, item) in value.as_object().into_iter().flatten() {
            let property = schema["properties"]
                .get(key)
                .or_else(|| schema.get("additionalProperties"));
            if let Some(property) = property {
                self.look(property, item, &child(pointer, key), depth + 1);
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.look(&schema["items"], item, &format!("{pointer}/{index}"), depth + 1);
        }
    }
}
