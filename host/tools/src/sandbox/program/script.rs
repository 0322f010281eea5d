//! Scripts: capsules that are programs.

use wasmtime::{
    Engine, Store,
    component::{ComponentExportIndex, InstancePre},
};

use super::result;
use crate::sandbox::host::{Guest, Status, ToolResult};

/// A bound component that exports `murmur:capsule/run`.
#[derive(Clone)]
pub(crate) struct Script {
    pub(in crate::sandbox) pre: InstancePre<Guest>,
    pub(in crate::sandbox) run: ComponentExportIndex,
}

impl Script {
    pub(super) fn engine(&self) -> &Engine {
        self.pre.engine()
    }

    pub(super) async fn run(&self, store: &mut Store<Guest>) -> wasmtime::Result<ToolResult> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let run = instance.get_typed_func::<(), ()>(&mut *store, self.run)?;
        run.call_async(&mut *store, ()).await?;
        Ok(result(Status::Passed, None))
    }
}
