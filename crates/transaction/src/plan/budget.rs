//! Budget of a planned transaction: compute units, their price, and what it may load, as instructions (pure).

use solana_compute_budget_interface::ComputeBudgetInstruction;

use super::TransactionPlan;
use crate::{
    compute_table::{self as table, TokenKind},
    loaded_bytes::loaded_bytes,
    planned_instruction::{PlannedInstruction, manifest},
};

/// Compute units of a transaction.
pub(super) struct PlannedUnits {
    pub(super) modelled: u32,
    pub(super) planned: u32,
    pub(super) limit: u32,
}

impl TransactionPlan {
    /// What these instructions use, with those of the compute budget where there are any.
    pub(super) fn units<'a>(
        &self,
        instructions: impl Iterator<Item = &'a PlannedInstruction>,
        instructed: bool,
    ) -> PlannedUnits {
        let budget = if instructed {
            table::BUILTIN.saturating_mul(2)
        } else {
            0
        };
        let token_program = if self.unwraps_lamports {
            0
        } else {
            table::OLDER_TOKEN_PROGRAM
        };
        let planned = instructions
            .map(|planned| planned.units)
            .fold(budget.saturating_add(token_program), u32::saturating_add);
        let units = &self.exchange_units;
        PlannedUnits {
            modelled: planned
                .saturating_sub(units.learned)
                .saturating_add(units.modelled),
            planned,
            limit: planned.saturating_add(self.unit_headroom),
        }
    }

    /// The most bytes that a transaction of these instructions loads.
    pub(super) fn loaded_bytes(&self, instructions: &[PlannedInstruction]) -> u32 {
        let sides = [Some(self.input), self.middle, Some(self.output)];
        let kinds = sides.into_iter().flatten().map(|side| side.token.kind);
        let extended = kinds.filter(|kind| *kind != TokenKind::Spl);
        let mints = extended.fold(0, |count: u32, _| count.saturating_add(1));
        loaded_bytes(instructions, self.route.first().exchange.program, mints)
    }
}

/// Price and limit of compute units.
pub(super) fn budget_instructions(unit_price: u64, unit_limit: u32) -> [PlannedInstruction; 2] {
    let price = ComputeBudgetInstruction::set_compute_unit_price(unit_price);
    let limit = ComputeBudgetInstruction::set_compute_unit_limit(unit_limit);
    [
        PlannedInstruction::new(manifest::UNIT_PRICE, price, table::BUILTIN),
        PlannedInstruction::new(manifest::UNIT_LIMIT, limit, table::BUILTIN),
    ]
}

/// The limit of what is loaded.
pub(super) fn limit_of_loaded_bytes(bytes: u32) -> PlannedInstruction {
    let limit = ComputeBudgetInstruction::set_loaded_accounts_data_size_limit(bytes);
    PlannedInstruction::new(manifest::LOADED_BYTES, limit, table::BUILTIN)
}
