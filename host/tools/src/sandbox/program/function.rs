//! Functions on plain values, called by their types.

use std::sync::Arc;

use serde_json::Value;
use wasmtime::{
    Engine, Store,
    component::{ComponentExportIndex, InstancePre},
};

use super::{UNSET, result};
use crate::{
    sandbox::host::{Guest, Status, ToolResult},
    values::{Misfit, Outcome, Signature, arguments, outcome},
};

/// The arguments fit the tool's schema and not the function: a schema that the manifest gives can say less than the types do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::sandbox) struct BadArguments(Misfit);

/// An exported function of a bound component.
#[derive(Clone)]
pub(crate) struct Function {
    pub(in crate::sandbox) pre: InstancePre<Guest>,
    pub(in crate::sandbox) export: ComponentExportIndex,
    pub(in crate::sandbox) signature: Arc<Signature>,
}

impl Function {
    pub(super) fn engine(&self) -> &Engine {
        self.pre.engine()
    }

    pub(super) async fn run(&self, store: &mut Store<Guest>, given: &Value) -> wasmtime::Result<ToolResult> {
        let signature = &*self.signature;
        let params = arguments(signature, given).map_err(|why| wasmtime::Error::new(BadArguments(why)))?;
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let function = instance
            .get_func(&mut *store, self.export)
            .ok_or_else(|| wasmtime::Error::msg("an export that was found at load is gone"))?;
        let mut returned = vec![UNSET; usize::from(signature.result.is_some())];
        function.call_async(&mut *store, &params, &mut returned).await?;
        let outcome = outcome(signature.result.as_ref(), returned.first()).map_err(wasmtime::Error::msg)?;
        Ok(match outcome {
            Outcome::Passed(value) => result(Status::Passed, value.map(text)),
            Outcome::Failed(value) => result(
                Status::Failed,
                Some(value.map_or_else(|| "it gives no reason".into(), text)),
            ),
        })
    }
}

/// A text as it is, anything else as JSON.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
