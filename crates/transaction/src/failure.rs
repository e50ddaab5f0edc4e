//! Failure: which program refused a transaction, and why, read from the chain's error and its logs (pure).

use cpmm::{exchange_error, ids};
use solana_pubkey::Pubkey;
use spl_token_interface::error::TokenError;
use swap_guard_interface::{GuardError, PROGRAM_ID};

/// Which kind of program a failure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raiser {
    /// The guard.
    Guard,
    /// The exchange.
    Exchange,
    /// One of the token programs.
    TokenProgram,
    /// Another program, or the chain itself.
    Other,
}

/// Why a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose error it is.
    pub raiser: Raiser,
    /// The program that failed first; `None` where the chain refused the transaction before any ran.
    pub program: Option<Pubkey>,
    /// Its custom error code, if it is one.
    pub code: Option<u32>,
    /// What its source calls that code, where it is known.
    pub name: Option<String>,
    /// In words.
    pub message: String,
}

impl Raiser {
    fn of(program: &Pubkey, exchange: &Pubkey) -> Self {
        match *program {
            PROGRAM_ID => Self::Guard,
            _ if program == exchange => Self::Exchange,
            ids::SPL_TOKEN | ids::TOKEN_2022 => Self::TokenProgram,
            _ => Self::Other,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Exchange => "exchange",
            Self::TokenProgram => "tokenProgram",
            Self::Other => "other",
        }
    }

    /// Name and meaning of a code of its own.
    fn error(self, code: u32) -> Option<(String, String)> {
        match self {
            Self::Guard => {
                let error = GuardError::from_code(code)?;
                Some((format!("{error:?}"), error.to_string()))
            }
            Self::Exchange => {
                let (name, meaning) = exchange_error(code)?;
                Some((name.to_owned(), meaning.to_owned()))
            }
            // Token-2022's codes begin with those of SPL Token.
            Self::TokenProgram => {
                let error = TokenError::try_from(code).ok()?;
                Some((format!("{error:?}"), error.to_string()))
            }
            Self::Other => None,
        }
    }
}

impl Failure {
    /// Of a transaction with this error and these logs; `exchange` is the exchange's program. Programs above the first one that failed fail with its error.
    #[must_use]
    pub fn of(error: &str, logs: &[String], exchange: &Pubkey) -> Self {
        let failed = logs.iter().find_map(|line| {
            // What a program prints stands behind `Program log: `, so no program can forge this line.
            let (program, why) = line.strip_prefix("Program ")?.split_once(" failed: ")?;
            Some((program.parse::<Pubkey>().ok()?, why))
        });
        let Some((program, why)) = failed else {
            return Self {
                raiser: Raiser::Other,
                program: None,
                code: None,
                name: None,
                message: error.to_owned(),
            };
        };
        let raiser = Raiser::of(&program, exchange);
        let code = why
            .strip_prefix("custom program error: 0x")
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        let known = code.and_then(|code| raiser.error(code));
        let (name, meaning) = known.unzip();
        Self {
            raiser,
            program: Some(program),
            code,
            name,
            message: meaning.unwrap_or_else(|| why.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = "Error processing Instruction 2: custom program error: 0x1775";

    fn failed(inner: &Pubkey, why: &str) -> Failure {
        let logs = [
            format!("Program {PROGRAM_ID} invoke [1]"),
            format!("Program {inner} invoke [2]"),
            format!("Program log: Program {PROGRAM_ID} failed: custom program error: 0x1"),
            format!("Program {inner} consumed 5 of 6 compute units"),
            format!("Program {inner} failed: {why}"),
            format!("Program {PROGRAM_ID} failed: {why}"),
        ];
        Failure::of(ERROR, &logs, &ids::PROGRAM_ID)
    }

    #[test]
    fn a_code_is_read_as_the_program_that_raised_it_means_it() {
        let why = "custom program error: 0x1775";
        let other = Pubkey::from([9; 32]);
        for (program, raiser, name) in [
            (ids::PROGRAM_ID, Raiser::Exchange, Some("ExceededSlippage")),
            (PROGRAM_ID, Raiser::Guard, Some("ZeroAmountIn")),
            (ids::TOKEN_2022, Raiser::TokenProgram, None),
            (other, Raiser::Other, None),
        ] {
            let failure = failed(&program, why);
            assert_eq!(failure.raiser, raiser);
            assert_eq!(failure.program, Some(program));
            assert_eq!(failure.code, Some(6005));
            assert_eq!(failure.name.as_deref(), name);
        }
        for program in [ids::SPL_TOKEN, ids::TOKEN_2022] {
            let failure = failed(&program, "custom program error: 0x1");
            assert_eq!(failure.raiser, Raiser::TokenProgram);
            assert_eq!(failure.name.as_deref(), Some("InsufficientFunds"));
            assert_eq!(failure.message, "Insufficient funds");
        }
    }

    #[test]
    fn what_is_no_code_is_in_the_words_of_the_chain() {
        let failure = failed(&ids::SPL_TOKEN, "insufficient account keys for instruction");
        assert_eq!((failure.code, failure.name), (None, None));
        assert_eq!(failure.message, "insufficient account keys for instruction");
        let before = Failure::of("Blockhash not found", &[], &ids::PROGRAM_ID);
        assert_eq!(before.raiser, Raiser::Other);
        assert_eq!(
            (before.program, before.message.as_str()),
            (None, "Blockhash not found")
        );
    }
}
