//! `wasi:config/store`: what the manifest gives one tool to read.

use super::host::Guest;

mod bindings {
    wasmtime::component::bindgen!({
        inline: "
            package wasi:config@0.2.0-rc.1;
            interface store {
                variant error { upstream(string), io(string) }
                get: func(key: string) -> result<option<string>, error>;
                get-all: func() -> result<list<tuple<string, string>>, error>;
            }
            world imports { import store; }
        ",
    });
}

use bindings::wasi::config::store;
pub(super) use store::add_to_linker;

impl store::Host for Guest {
    fn get(&mut self, key: String) -> Result<Option<String>, store::Error> {
        Ok(self.config.get(&key).cloned())
    }

    fn get_all(&mut self) -> Result<Vec<(String, String)>, store::Error> {
        let all = self.config.iter();
        Ok(all.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}
