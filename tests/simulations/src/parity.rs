//! Parity of the arithmetic and the exchange's binary: the same swap, predicted and executed.

use std::fmt;

use cpmm::{fixtures::Outcome, ids};
use sluice_testkit::{
    random_routes::RoutedSwap,
    random_swaps::Swap,
    svm::{Refused, Svm},
};
use solana_instruction::error::InstructionError;
use solana_pubkey::Pubkey;

/// A swap that is predicted and executed.
pub trait Comparable: fmt::Debug {
    /// What it did.
    type Done: fmt::Debug + PartialEq;

    /// What the arithmetic says.
    ///
    /// # Errors
    /// The program that refuses, and its code; nothing for a refusal without a code.
    fn predicted(&self) -> Result<Self::Done, Option<(Pubkey, u32)>>;

    /// What the chain does.
    ///
    /// # Errors
    /// Why the transaction failed.
    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused>;
}

impl Comparable for Swap {
    type Done = sluice_testkit::random_swaps::Traded;

    fn predicted(&self) -> Result<Self::Done, Option<(Pubkey, u32)>> {
        let traded = self.predict().ok_or(None)?;
        match traded.outcome {
            Outcome::Ok { .. } => Ok(traded),
            Outcome::ErrorCode(code) => Err(Some((ids::PROGRAM_ID, code))),
        }
    }

    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused> {
        self.execute(svm)
    }
}

impl Comparable for RoutedSwap {
    type Done = sluice_testkit::random_routes::Routed;

    fn predicted(&self) -> Result<Self::Done, Option<(Pubkey, u32)>> {
        self.predict()
    }

    fn executed(&self, svm: &mut Svm) -> Result<Self::Done, Refused> {
        self.execute(svm)
    }
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
            let agree = match (&predicted, &refused.error) {
                // Without a code of the exchange's own, any failure is the predicted one.
                (Err(None), _) => true,
                (Err(Some((program, code))), InstructionError::Custom(raised)) => {
                    code == raised && *program == refused.raised_by()
                }
                _ => false,
            };
            (format!("{:?}", refused.error), agree)
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
