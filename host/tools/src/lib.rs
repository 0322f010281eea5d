//! Tool catalogue, dispatch chain and the WebAssembly sandbox.
