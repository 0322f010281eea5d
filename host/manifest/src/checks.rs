//! What a schema cannot say: names that must be unique, paths that must stay inside, quantities that must be more than zero.

use std::{
    collections::HashMap,
    path::{Component, Path},
};

use capsule_api::{ByteSize, HumanDuration, NotAQuantity};
use serde_json::Value;

use crate::{
    capabilities::since_1970,
    codes,
    places::{Places, dotted},
    report::{Origin, Problem},
    tree::{Duplicate, child},
};

/// Problems beyond the schema. For a value that does not fit its schema they say less than the schema does, so the caller leaves them out.
pub(crate) fn problems(root: &Value, places: &Places) -> Vec<Problem> {
    let mut checks = Checks {
        places,
        problems: Vec::new(),
    };
    checks.version(root);
    checks.unique(root, "/tools", "name", "tool");
    for block in grants(root) {
        let directories = format!("{block}/filesystem");
        checks.unique(root, &directories, "at", "grant");
        checks.mount_points(root, &directories);
        checks.limits(root, &format!("{block}/limits"));
    }
    checks.paths(root);
    checks.clock(root);
    checks.problems
}

/// Keys that the file has twice.
pub(crate) fn duplicates(duplicates: &[Duplicate]) -> Vec<Problem> {
    let tell = |duplicate: &Duplicate| {
        let (above, key) = duplicate.pointer.rsplit_once('/').unwrap_or_default();
        let first = duplicate.first.map_or_else(String::new, |at| {
            format!(" (first at line {}, column {})", at.line, at.column)
        });
        let key = dotted(&format!("/{key}"));
        let origin = duplicate.second.map_or(Origin::File, Origin::Line);
        let mut problem = Problem::new(
            &codes::INVALID,
            origin,
            format!("the key `{key}` is there twice{first}"),
        );
        problem.key = dotted(above);
        problem
    };
    duplicates.iter().map(tell).collect()
}

/// Texts with `${NAME}` in a place where it is not expanded, which a reader of the manifest may not expect.
pub(crate) fn warnings(root: &Value, places: &Places) -> Vec<Problem> {
    let tools = tool_files(root);
    let grants = directories(root)
        .into_iter()
        .flat_map(|(at, grant)| ["path", "at"].map(|key| (child(&at, key), &grant[key])));
    let literal = tools
        .chain(grants)
        .filter(|(_, value)| value.as_str().is_some_and(|text| text.contains("${")));
    let warn = |(pointer, _): (String, &Value)| {
        let message = "`${…}` is not expanded here, only in texts of `inference`";
        let mut problem = Problem::new(&codes::INVALID, places.value(&pointer), message);
        problem.key = dotted(&pointer);
        problem
    };
    literal.map(warn).collect()
}

fn items<'a>(root: &'a Value, list: &'a str) -> impl Iterator<Item = (String, &'a Value)> + 'a {
    let values = root.pointer(list).and_then(Value::as_array).into_iter().flatten();
    values
        .enumerate()
        .map(move |(index, item)| (format!("{list}/{index}"), item))
}

/// The blocks of grants, by place: the capsule's, and those of the tools.
fn grants(root: &Value) -> Vec<String> {
    let tools = items(root, "/tools").filter(|(_, tool)| tool.get("capabilities").is_some());
    let own = tools.map(|(at, _)| child(&at, "capabilities"));
    std::iter::once("/capabilities".to_owned()).chain(own).collect()
}

/// The granted directories of all blocks, by place.
fn directories(root: &Value) -> Vec<(String, &Value)> {
    let lists = grants(root).into_iter().map(|block| format!("{block}/filesystem"));
    let all = |list: String| {
        let found: Vec<(String, &Value)> = match root.pointer(&list).and_then(Value::as_array) {
            Some(values) => values
                .iter()
                .enumerate()
                .map(|(at, item)| (format!("{list}/{at}"), item))
                .collect(),
            None => Vec::new(),
        };
        found
    };
    lists.flat_map(all).collect()
}

/// The files of the tools, and the script, by place.
fn tool_files(root: &Value) -> impl Iterator<Item = (String, &Value)> {
    let tools = items(root, "/tools");
    tools
        .flat_map(|(at, tool)| ["component", "skill"].map(|key| (child(&at, key), &tool[key])))
        .chain([("/script".to_owned(), &root["script"])])
}

struct Checks<'a> {
    places: &'a Places,
    problems: Vec<Problem>,
}

impl Checks<'_> {
    fn add(&mut self, pointer: &str, message: String) {
        let mut problem = Problem::new(&codes::INVALID, self.places.value(pointer), message);
        problem.key = dotted(pointer);
        self.problems.push(problem);
    }

    fn version(&mut self, root: &Value) {
        if let Some(Err(error)) = root["version"].as_str().map(semver::Version::parse) {
            self.add(
                "/version",
                format!("expected a semantic version such as `1.4.0`: {error}"),
            );
        }
    }

    fn unique(&mut self, root: &Value, list: &str, key: &str, what: &str) {
        let named: Vec<(String, &str)> = items(root, list)
            .filter_map(|(at, item)| Some((child(&at, key), item[key].as_str()?)))
            .collect();
        let mut taken: HashMap<&str, &str> = HashMap::new();
        for (pointer, name) in &named {
            let first = *taken.entry(name).or_insert(pointer);
            if first == pointer {
                continue;
            }
            let place = match self.places.value(first) {
                Origin::Line(at) => format!(" at line {}, column {}", at.line, at.column),
                Origin::Flag(flag) => format!(" by {flag}"),
                Origin::File => String::new(),
            };
            let message = format!("{name:?} is already taken by another {what}{place} ({})", dotted(first));
            self.add(pointer, message);
        }
    }

    fn paths(&mut self, root: &Value) {
        let tools = tool_files(root);
        let grants = directories(root)
            .into_iter()
            .map(|(at, item)| (child(&at, "path"), &item["path"]));
        let mut paths: Vec<_> = tools.chain(grants).collect();
        let prompt = |at: String, block: &Value| {
            let file = block.get("system_prompt_file").cloned().unwrap_or_default();
            (child(&at, "system_prompt_file"), file)
        };
        let mut prompts = vec![prompt("/inference".to_owned(), &root["inference"])];
        for (name, block) in root["inference"]["transports"].as_object().into_iter().flatten() {
            prompts.push(prompt(child("/inference/transports", name), block));
        }
        paths.extend(prompts.iter().map(|(at, file)| (at.clone(), file)));
        for (pointer, path) in paths {
            if path.as_str().is_some_and(leaves) {
                let message = "the path leaves the manifest's directory; name what is elsewhere by an absolute path";
                self.add(&pointer, message.to_owned());
            }
        }
    }

    fn clock(&mut self, root: &Value) {
        let clock = root.pointer("/capabilities/clock").and_then(Value::as_str);
        if let Some(Err(why)) = clock.map(since_1970) {
            self.add("/capabilities/clock", format!("expected a time from 1970 on: {why}"));
        }
    }

    fn mount_points(&mut self, root: &Value, list: &str) {
        for (at, grant) in items(root, list) {
            let odd = |at: &str| {
                at.starts_with('/') && at != "/" && at[1..].split('/').any(|part| matches!(part, "" | "." | ".."))
            };
            if grant["at"].as_str().is_some_and(odd) {
                let message = "expected a plain absolute path such as `/data`: no `.`, no `..`, no empty part";
                self.add(&child(&at, "at"), message.to_owned());
            }
        }
    }

    fn limits(&mut self, root: &Value, block: &str) {
        let limits = root.pointer(block).unwrap_or(&Value::Null);
        for key in ["memory", "output", "http_body"] {
            let size = limits[key].as_str().map(str::parse::<ByteSize>);
            self.positive(&child(block, key), size.map(|size| size.map(|size| size.0 > 0)));
        }
        let time = limits["deadline"].as_str().map(str::parse::<HumanDuration>);
        self.positive(
            &child(block, "deadline"),
            time.map(|time| time.map(|time| !time.0.is_zero())),
        );
    }

    fn positive(&mut self, pointer: &str, positive: Option<Result<bool, NotAQuantity>>) {
        let message = match positive {
            None | Some(Ok(true)) => return,
            Some(Ok(false)) => "expected more than zero",
            // Its form is right, else the schema has told.
            Some(Err(_)) => "the number is too large",
        };
        self.add(pointer, message.to_owned());
    }
}

fn leaves(path: &str) -> bool {
    let path = Path::new(path);
    !path.is_absolute()
        && path
            .components()
            .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
}
