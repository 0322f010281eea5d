mod slot;
pub use slot::{AttachedTurn, SlotDispatch};
