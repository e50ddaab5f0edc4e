//! Parts of a planned swap, for a transaction of the caller's own (pure).

use crate::{costs::Costs, planned_instruction::PlannedInstruction, unsigned::SolOutput};

/// A swap and what surrounds it, in the order of their execution.
#[derive(Clone, Debug)]
pub struct SwapParts {
    /// Creation of absent token accounts, wrapping, a platform's fee.
    pub set_up: Vec<PlannedInstruction>,
    /// The guarded swap.
    pub swap: PlannedInstruction,
    /// Unwrapping and closing.
    pub clean_up: Vec<PlannedInstruction>,
}

/// A swap for a transaction of the caller's own.
#[derive(Clone, Debug)]
pub struct ApartSwap {
    /// Unit price and unit limit of a transaction of all parts and the headroom, as instructions.
    pub budget: [PlannedInstruction; 2],
    /// The swap and what surrounds it.
    pub parts: SwapParts,
    /// The compute unit limit in `budget`.
    pub unit_limit: u32,
    /// The price of a unit in `budget`, micro-lamports.
    pub unit_price: u64,
    /// What such a transaction costs.
    pub costs: Costs,
    /// What happens to SOL that comes out.
    pub sol_output: Option<SolOutput>,
}

impl SwapParts {
    /// All parts in one list.
    #[must_use]
    pub fn into_instructions(self) -> Vec<PlannedInstruction> {
        let Self {
            mut set_up,
            swap,
            clean_up,
        } = self;
        set_up.push(swap);
        set_up.extend(clean_up);
        set_up
    }
}
