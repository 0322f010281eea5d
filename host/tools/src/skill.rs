//! Skills: texts that the model may read when it needs them, as tools without input.

use std::{fs, sync::Arc};

use async_trait::async_trait;
use capsule_api::{ByteSize, Error, Tool, ToolContext, ToolReply, ToolSpec};
use serde_json::Value;

use crate::{codes, source::ToolSource};

/// The largest text: all of it goes to the model.
const LARGEST: u64 = 1 << 20;

/// A text that a call returns.
pub(crate) struct Skill {
    spec: ToolSpec,
    text: Arc<str>,
}

impl Skill {
    pub(crate) fn new(spec: ToolSpec, text: Arc<str>) -> Self {
        Self { spec, text }
    }
}

#[async_trait]
impl Tool for Skill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, _: Value, _: ToolContext) -> ToolReply {
        ToolReply::text(&*self.text)
    }
}

/// The text of a skill's file.
pub(crate) fn read(source: &ToolSource) -> Result<Arc<str>, Error> {
    let failed = |what: String| source.error(&codes::FILE, what);
    // Asked first: opening a FIFO would wait for its writer.
    let unreadable = |cause: std::io::Error| source.unreadable("the text", &cause);
    let found = fs::metadata(&source.component).map_err(unreadable)?;
    if !found.is_file() {
        return Err(failed("the text is not a file".into()));
    }
    if found.len() > LARGEST {
        let (has, most) = (ByteSize(found.len()), ByteSize(LARGEST));
        return Err(failed(format!("the text has {has}; at most {most} are read")));
    }
    let text = fs::read_to_string(&source.component).map_err(unreadable)?;
    Ok(text.into())
}

/// What a skill is about, where nothing else says it: its first line, without the marks of a heading.
pub(crate) fn description(text: &str) -> String {
    let line = text
        .lines()
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty() && *line != "---");
    match line {
        Some(line) => format!("Returns the text: {line}"),
        None => "Returns a text.".to_owned(),
    }
}
