//! Slot state: the exchange at the end of one slot, as the tree of slots hands it to readers.

use crate::state::State;

/// A state and the slot at whose end it is true.
#[derive(Clone)]
pub(crate) struct SlotState {
    pub(crate) slot: u64,
    pub(crate) state: State,
}

/// The states of the two heads.
#[derive(Clone)]
pub(crate) struct HeadStates {
    /// Of the newest sealed slot.
    pub(crate) processed: SlotState,
    /// Of the newest confirmed sealed slot.
    pub(crate) confirmed: SlotState,
}
