//! Parity of the arithmetic and the exchange's binary: the same swap, predicted and executed.

use std::fmt;

use cpmm::fixtures::Outcome;
use sluice_testkit::{
    random_swaps::{Swap, Traded},
    svm::Svm,
};
use solana_instruction::error::InstructionError;

/// Predicts and executes, and compares.
///
/// # Errors
/// The difference.
pub fn compare(swap: &Swap, svm: &mut Svm) -> Result<Verdict, Mismatch> {
    let predicted = swap.predict();
    let (executed, agree) = match swap.execute(svm) {
        Ok(traded) => {
            let agree = predicted.as_ref() == Some(&traded);
            (format!("{traded:?}"), agree)
        }
        Err(refused) => {
            let agree = match (&predicted, &refused.error) {
                // Without a code of the exchange's own, any failure is the predicted one.
                (None, _) => true,
                (Some(traded), InstructionError::Custom(raised)) => {
                    traded.outcome == Outcome::ErrorCode(*raised)
                }
                _ => false,
            };
            (format!("{:?}", refused.error), agree)
        }
    };
    if !agree {
        return Err(Mismatch {
            swap: Box::new(swap.clone()),
            predicted,
            executed,
        });
    }
    Ok(match predicted.map(|traded| traded.outcome) {
        Some(Outcome::Ok { .. }) => Verdict::Paid,
        _ => Verdict::Refused,
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
    swap: Box<Swap>,
    predicted: Option<Traded>,
    executed: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "predicted {:?}\nexecuted  {}\nof {:#?}",
            self.predicted, self.executed, self.swap
        )
    }
}
