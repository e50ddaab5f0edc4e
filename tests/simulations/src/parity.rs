//! Parity of the arithmetic and the exchange's binary: the same swap, predicted and executed.

use std::fmt;

use cpmm::{
    Amount, Direction, Hop, HopRefusal, Refusal, fixtures::Outcome, ids, quote_two_hops_exact_in,
};
use sluice_testkit::{
    random_routes::RoutedSwap,
    random_swaps::{Swap, Terms},
    svm::{Refused, Svm},
};
use solana_instruction::error::InstructionError;
use solana_pubkey::Pubkey;

/// The exchange's code where the fees that are booked leave 64 bits.
const MATH_OVERFLOW: u32 = 6011;

/// Code of the token programs where an account holds less than is transferred.
const INSUFFICIENT_FUNDS: u32 = 1;

/// Their code where a balance would leave 64 bits.
const TOKEN_OVERFLOW: u32 = 14;

/// Their code where an account is frozen.
const ACCOUNT_FROZEN: u32 = 17;

/// A swap that is predicted and executed.
pub trait Comparable: fmt::Debug {
    /// What it did.
    type Done: fmt::Debug + PartialEq;

    /// What the arithmetic says.
    ///
    /// # Errors
    /// The refusal.
    fn predicted(&self) -> Result<Self::Done, Predicted>;

    /// What the chain does.
    ///
    /// # Errors
    /// Why the transaction failed.
    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused>;
}

/// A refusal that is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicted {
    /// With this code, which this program raises.
    Code(Pubkey, u32),
    /// Without a code of the exchange's own.
    Without(Refusal),
}

impl Predicted {
    /// Whether a failure is the one that is predicted.
    #[must_use]
    pub fn agrees(&self, failure: &Refused) -> bool {
        let by = failure.raised_by();
        match self {
            Self::Code(program, code) => {
                *program == by && failure.error == InstructionError::Custom(*code)
            }
            Self::Without(refusal) => agrees_without_code(*refusal, by, &failure.error),
        }
    }
}

/// Whether the program `by` fails like this for a refusal that has no code of the exchange's own.
fn agrees_without_code(refusal: Refusal, by: Pubkey, error: &InstructionError) -> bool {
    let by_exchange = by == ids::PROGRAM_ID;
    let by_token_program = [ids::SPL_TOKEN, ids::TOKEN_2022].contains(&by);
    // Where the official program panics, the stand-in says what for.
    let arithmetic = by_exchange
        && matches!(
            error,
            InstructionError::ArithmeticOverflow | InstructionError::ProgramFailedToComplete
        );
    match refusal {
        Refusal::ZeroReserves | Refusal::InsufficientReserves => arithmetic,
        Refusal::Overflow => match error {
            InstructionError::Custom(MATH_OVERFLOW) => by_exchange,
            // Of the balance of a vault, for which nobody can hold enough.
            InstructionError::Custom(INSUFFICIENT_FUNDS | TOKEN_OVERFLOW) => by_token_program,
            _ => arithmetic,
        },
        Refusal::FrozenVault => {
            by_token_program && *error == InstructionError::Custom(ACCOUNT_FROZEN)
        }
        // Which error it is depends on the extension, and on what its mint is set to.
        Refusal::UnsupportedExtension { .. } => by == ids::TOKEN_2022,
        Refusal::NotOpenYet { .. }
        | Refusal::SwapDisabled
        | Refusal::ZeroInput
        | Refusal::ZeroOutput
        | Refusal::ZeroTradingTokens
        | Refusal::InsufficientVault
        | Refusal::InvalidFeeModel { .. }
        | Refusal::TransferFeeMismatch => false,
    }
}

impl Comparable for Swap {
    type Done = sluice_testkit::random_swaps::Traded;

    fn predicted(&self) -> Result<Self::Done, Predicted> {
        let Some(traded) = self.predict() else {
            return Err(Predicted::Without(refusal(self)));
        };
        match traded.outcome {
            Outcome::Ok { .. } => Ok(traded),
            Outcome::ErrorCode(code) => Err(Predicted::Code(ids::PROGRAM_ID, code)),
        }
    }

    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused> {
        self.execute(svm)
    }
}

/// Why a swap is refused.
fn refusal(swap: &Swap) -> Refusal {
    let (snapshot, direction) = (&swap.snapshot, swap.direction);
    let refused = match swap.terms {
        Terms::ExactIn { amount_in, .. } => snapshot
            .quote_exact_in(direction, Amount::new(amount_in), &swap.clock)
            .err(),
        Terms::ExactOut { amount_out, .. } => snapshot
            .quote_exact_out(direction, Amount::new(amount_out), &swap.clock)
            .err(),
    };
    refused.expect("what has no outcome is refused")
}

impl Comparable for RoutedSwap {
    type Done = sluice_testkit::random_routes::Routed;

    fn predicted(&self) -> Result<Self::Done, Predicted> {
        self.predict().map_err(|refuser| match refuser {
            Some((program, code)) => Predicted::Code(program, code),
            None => Predicted::Without(routed_refusal(self)),
        })
    }

    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused> {
        self.execute(svm)
    }
}

/// Why a pool of a route refuses.
fn routed_refusal(swap: &RoutedSwap) -> Refusal {
    let hops = swap.pools.each_ref().map(|pool| Hop {
        pool,
        direction: Direction::ZeroForOne,
    });
    let quote = quote_two_hops_exact_in(hops, Amount::new(swap.amount_in), &swap.clock);
    let (HopRefusal::First(refusal) | HopRefusal::Second(refusal)) =
        quote.expect_err("what has no outcome is refused");
    refusal
}

/// Predicts and executes, and compares.
///
/// # Errors
/// The difference.
pub fn compare<S: Comparable>(swap: &S, svm: &mut Svm) -> Result<Verdict, Mismatch> {
    let predicted = swap.predicted();
    let (executed, agree) = match swap.executed(svm) {
        Ok(done) => {
            let agree = predicted.as_ref() == Ok(&done);
            (format!("{done:?}"), agree)
        }
        Err(refused) => {
            let agree = predicted
                .as_ref()
                .is_err_and(|predicted| predicted.agrees(&refused));
            let by = refused.raised_by();
            (format!("{:?} of {by}", refused.error), agree)
        }
    };
    if !agree {
        return Err(Mismatch {
            swap: format!("{swap:#?}"),
            predicted: format!("{predicted:?}"),
            executed,
        });
    }
    Ok(if predicted.is_ok() {
        Verdict::Paid
    } else {
        Verdict::Refused
    })
}

/// How a swap ended, the same way twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With the same payment.
    Paid,
    /// With the same refusal.
    Refused,
}

/// A swap that ended otherwise than predicted.
#[derive(Debug)]
pub struct Mismatch {
    swap: String,
    predicted: String,
    executed: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "predicted {}\nexecuted  {}\nof {}",
            self.predicted, self.executed, self.swap
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGE: Pubkey = ids::PROGRAM_ID;

    fn failure(by: Pubkey, error: InstructionError) -> Refused {
        Refused {
            instruction: 0,
            error,
            compute_units: 0,
            logs: vec![format!("Program {by} failed: as it is")],
        }
    }

    /// Which of these failures agree with a refusal, by their place.
    fn agreeing(predicted: Predicted) -> Vec<usize> {
        let custom = InstructionError::Custom;
        let failures = [
            failure(EXCHANGE, InstructionError::ArithmeticOverflow),
            failure(EXCHANGE, InstructionError::ProgramFailedToComplete),
            failure(EXCHANGE, custom(MATH_OVERFLOW)),
            failure(EXCHANGE, custom(INSUFFICIENT_FUNDS)),
            failure(ids::SPL_TOKEN, custom(INSUFFICIENT_FUNDS)),
            failure(ids::TOKEN_2022, custom(TOKEN_OVERFLOW)),
            failure(ids::TOKEN_2022, custom(ACCOUNT_FROZEN)),
            failure(ids::SPL_TOKEN, InstructionError::ArithmeticOverflow),
            failure(EXCHANGE, InstructionError::ComputationalBudgetExceeded),
            failure(EXCHANGE, InstructionError::InvalidAccountData),
            failure(EXCHANGE, custom(6000)),
        ];
        let numbered = failures.iter().enumerate();
        let agreeing = numbered.filter(|(_, failure)| predicted.agrees(failure));
        agreeing.map(|(index, _)| index).collect()
    }

    #[test]
    fn a_refusal_without_a_code_agrees_with_its_own_failures_alone() {
        let without = |refusal| agreeing(Predicted::Without(refusal));
        assert_eq!(without(Refusal::ZeroReserves), [0, 1]);
        assert_eq!(without(Refusal::InsufficientReserves), [0, 1]);
        assert_eq!(without(Refusal::Overflow), [0, 1, 2, 4, 5]);
        assert_eq!(without(Refusal::FrozenVault), [6]);
        let extension = Refusal::UnsupportedExtension { extension: 14 };
        assert_eq!(without(extension), [5, 6]);
        assert!(without(Refusal::SwapDisabled).is_empty(), "it has a code");
    }

    #[test]
    fn a_refusal_with_a_code_agrees_with_this_code_of_this_program_alone() {
        assert_eq!(agreeing(Predicted::Code(EXCHANGE, 6000)), [10]);
        assert_eq!(agreeing(Predicted::Code(EXCHANGE, 14)), [0; 0]);
        assert_eq!(agreeing(Predicted::Code(ids::TOKEN_2022, 14)), [5]);
    }
}
