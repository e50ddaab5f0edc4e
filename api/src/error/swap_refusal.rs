//! Swap refusals: why a swap was not built as asked, with code, status and members.

use axum::http::StatusCode as S;
use serde_json::{Map, Value, json};
use sluice_transaction::{Failure, size::Remedy};
use solana_pubkey::Pubkey;
use thiserror::Error;

use super::{
    code::ProblemCode as C,
    problem::{Problem, problem},
};

/// Why a swap was not built as asked.
#[derive(Debug, Error)]
pub enum SwapRefusal {
    /// The named pool trades other mints than the quote.
    #[error("pool {pool} does not trade quote.inputMint for quote.outputMint")]
    PoolMintMismatch {
        /// Its address.
        pool: String,
    },
    /// The quote names another exchange than the one that is served.
    #[error("quote.program is {program}, but only pools of {served} are served")]
    WrongProgram {
        /// The program that was named.
        program: String,
        /// The program that is served.
        served: Pubkey,
    },
    /// The quote's minimum guards nothing, or cannot be reached.
    #[error("quote.minimumOut {fault}")]
    MinimumOutOfRange {
        /// What is wrong and what would be right.
        fault: &'static str,
    },
    /// The wallet's address belongs to a program, which cannot sign and has no associated token account to pay from.
    #[error("{field} is a program's address, which cannot sign; give a wallet's")]
    WalletOffCurve {
        /// Field of the body.
        field: &'static str,
    },
    /// The receiver cannot take what arrives.
    #[error("receiver {fault}")]
    ReceiverUnusable {
        /// What is wrong and what would be right.
        fault: String,
    },
    /// The platform's wallet cannot take its fee.
    #[error("feeWallet {fault}")]
    FeeWalletUnusable {
        /// What is wrong and what would be right.
        fault: String,
    },
    /// The nonce account gives no value for this transaction.
    #[error("nonceAccount {account} {fault}")]
    NonceAccountUnusable {
        /// Its address.
        account: String,
        /// What is wrong and what would be right.
        fault: String,
    },
    /// A token account cannot be used for this swap.
    #[error("token account {account} {fault}")]
    TokenAccountUnusable {
        /// Field of the body that leads to it.
        field: &'static str,
        /// Its address.
        account: String,
        /// What is wrong and what would be right.
        fault: String,
    },
    /// The network carries no transaction of this size.
    #[error(
        "the transaction has {size} bytes{}, and the network carries {limit}: {}",
        headroom_text(*headroom),
        remedy_text(remedies)
    )]
    TransactionTooLarge {
        /// Its length, bytes.
        size: usize,
        /// What the network carries, bytes.
        limit: usize,
        /// What is to be left of that for others, bytes.
        headroom: usize,
        /// The single changes that make it fit.
        remedies: Vec<Remedy>,
    },
    /// The cluster takes no transaction of version 1.
    #[error(
        "transactionVersion 1 is not active on this cluster; leave the field out, or ask for 0 or \"legacy\""
    )]
    VersionUnsupported,
    /// Another swap was asked for under the same key.
    #[error(
        "this Idempotency-Key was used for another body with the same userPublicKey; give each swap a key of its own"
    )]
    IdempotencyKeyReused,
    /// The wallet does not hold what the swap takes.
    #[error("the wallet holds {held} of the {needed} {unit} that the swap takes")]
    InsufficientBalance {
        /// What is short: `lamports`, or smallest units of the input mint.
        unit: String,
        /// What the wallet holds.
        held: u64,
        /// What the swap takes.
        needed: u64,
    },
    /// The node executed the transaction, and it failed.
    #[error("the simulated transaction fails{}: {}", at_text(instruction.as_ref()), failure.message)]
    SimulationFailed {
        /// Which program refused it, and why.
        failure: Box<Failure>,
        /// Position and name of the instruction that failed; `None` where the chain refused it before any ran.
        instruction: Option<(usize, &'static str)>,
        /// The first lines of its logs.
        logs: Vec<String>,
    },
    /// The quote is past its slot, or its pool moved so far that the chain would refuse the quote's own minimum.
    #[error("{reason}; use the fresh quote in this answer, or ask with refresh: true")]
    QuoteStale {
        /// What happened, in words.
        reason: String,
        /// A quote made now, with the slippage of the stale one, and when it is true: the members `quote` and `context`
        /// of an answer of `/v1/quote`. Empty when the pool pays nothing any more.
        fresh: Map<String, Value>,
    },
}

fn at_text(instruction: Option<&(usize, &'static str)>) -> String {
    let text = instruction.map(|(index, name)| format!(" in instruction {index} ({name})"));
    text.unwrap_or_default()
}

/// What a transaction is to leave free, where anything was asked for.
fn headroom_text(headroom: usize) -> String {
    match headroom {
        0 => String::new(),
        headroom => format!(" and is to leave sizeHeadroom {headroom} free"),
    }
}

/// What a caller can do about a transaction that is too large.
fn remedy_text(remedies: &[Remedy]) -> String {
    let texts = remedies.iter().map(|remedy| match remedy {
        Remedy::WithoutReceiver => "leave receiver out".to_owned(),
        Remedy::WithoutFeePayer => "leave feePayer out".to_owned(),
        Remedy::WithoutPlatformFee => "leave platformFeeBps and feeWallet out".to_owned(),
        Remedy::WithoutNonce => "leave nonceAccount out".to_owned(),
        Remedy::WithAccount { account, mint } => {
            format!("create token account {account} of mint {mint} before")
        }
        Remedy::WithoutUnwrapping => "swap with wrapAndUnwrapSol: false".to_owned(),
        Remedy::WithVersion0 => "ask for transactionVersion 0".to_owned(),
        Remedy::WithLookupTable => {
            "have the operator give the service a lookup table (its setting chain.lookup-table)"
                .to_owned()
        }
        Remedy::WithVersion1 => "ask for transactionVersion 1".to_owned(),
    });
    match texts.collect::<Vec<_>>().join(", or ") {
        text if text.is_empty() => "swap in two transactions, one for each pool".to_owned(),
        text => text,
    }
}

/// The field whose change is meant, or the account to be created.
fn remedy_member(remedy: &Remedy) -> String {
    match remedy {
        Remedy::WithoutReceiver => "receiver".to_owned(),
        Remedy::WithoutFeePayer => "feePayer".to_owned(),
        Remedy::WithoutPlatformFee => "platformFeeBps".to_owned(),
        Remedy::WithoutNonce => "nonceAccount".to_owned(),
        Remedy::WithAccount { account, .. } => account.to_string(),
        Remedy::WithoutUnwrapping => "wrapAndUnwrapSol".to_owned(),
        Remedy::WithLookupTable => "chain.lookup-table".to_owned(),
        Remedy::WithVersion0 | Remedy::WithVersion1 => "transactionVersion".to_owned(),
    }
}

impl SwapRefusal {
    pub(super) const fn problem(&self) -> Problem {
        match self {
            Self::PoolMintMismatch { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::PoolMintMismatch,
                "Mints do not match the pool",
            ),
            Self::WrongProgram { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::WrongProgram,
                "Not a pool of the exchange",
            ),
            Self::MinimumOutOfRange { .. } => problem(
                S::BAD_REQUEST,
                C::MinimumOutOutOfRange,
                "Minimum out of range",
            ),
            Self::WalletOffCurve { .. } => {
                problem(S::BAD_REQUEST, C::WalletOffCurve, "Not a wallet")
            }
            Self::ReceiverUnusable { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::ReceiverUnusable,
                "Receiver unusable",
            ),
            Self::FeeWalletUnusable { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::FeeWalletUnusable,
                "Fee wallet unusable",
            ),
            Self::NonceAccountUnusable { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::NonceAccountUnusable,
                "Nonce account unusable",
            ),
            Self::TokenAccountUnusable { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::TokenAccountUnusable,
                "Token account unusable",
            ),
            Self::TransactionTooLarge { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::TransactionTooLarge,
                "Transaction too large",
            ),
            Self::VersionUnsupported => problem(
                S::UNPROCESSABLE_ENTITY,
                C::TransactionVersionUnsupported,
                "Transaction version unsupported",
            ),
            Self::IdempotencyKeyReused => problem(
                S::UNPROCESSABLE_ENTITY,
                C::IdempotencyKeyReused,
                "Idempotency key reused",
            ),
            Self::InsufficientBalance { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::InsufficientBalance,
                "Insufficient balance",
            ),
            Self::SimulationFailed { .. } => problem(
                S::UNPROCESSABLE_ENTITY,
                C::SimulationFailed,
                "Simulation failed",
            ),
            Self::QuoteStale { .. } => problem(S::CONFLICT, C::QuoteStale, "Quote stale"),
        }
    }

    /// Machine-readable members beside the standard ones.
    pub(super) fn members(&self) -> Map<String, Value> {
        let members = match self {
            Self::WrongProgram { .. } => json!({ "field": "quote.program" }),
            Self::PoolMintMismatch { pool } => json!({ "field": "quote.pool", "pool": pool }),
            Self::MinimumOutOfRange { .. } => json!({ "field": "quote.minimumOut" }),
            Self::WalletOffCurve { field } => json!({ "field": field }),
            Self::ReceiverUnusable { .. } => json!({ "field": "receiver" }),
            Self::FeeWalletUnusable { .. } => json!({ "field": "feeWallet" }),
            Self::NonceAccountUnusable { account, .. } => {
                json!({ "field": "nonceAccount", "account": account })
            }
            Self::TokenAccountUnusable { field, account, .. } => {
                json!({ "field": field, "account": account })
            }
            Self::TransactionTooLarge {
                size,
                limit,
                headroom,
                remedies,
            } => {
                let mut remedies: Vec<_> = remedies.iter().map(remedy_member).collect();
                // Version 0 and version 1 are one field.
                remedies.dedup();
                json!({
                    "size": size,
                    "limit": limit,
                    "sizeHeadroom": headroom,
                    "remedies": remedies,
                })
            }
            Self::VersionUnsupported => json!({ "field": "transactionVersion" }),
            Self::IdempotencyKeyReused => json!({ "field": "Idempotency-Key" }),
            Self::InsufficientBalance { unit, held, needed } => {
                json!({
                    "unit": unit,
                    "held": held,
                    "heldString": held.to_string(),
                    "needed": needed,
                    "neededString": needed.to_string(),
                })
            }
            Self::SimulationFailed {
                failure,
                instruction,
                logs,
            } => json!({
                "raisedBy": failure.raiser.name(),
                "program": failure.program.map(|program| program.to_string()),
                "errorCode": failure.code,
                "errorName": failure.name,
                "instruction": instruction.map(|(index, _)| index),
                "instructionName": instruction.map(|(_, name)| name),
                "logs": logs,
            }),
            Self::QuoteStale { fresh, .. } => return fresh.clone(),
        };
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}
