//! Transactions: from a priced swap to the bytes of an unsigned transaction, and what it costs (pure).
//!
//! | for | see |
//! |---|---|
//! | what decides a transaction, and its instructions | `plan`, `route`, `planned_instruction` |
//! | token accounts that it makes and closes | `account_creation`, `account_closing` |
//! | what a platform takes of the input | `platform_fee` |
//! | what stands in place of a recent blockhash | `durable_nonce` |
//! | the result, and what it costs | `unsigned`, `version`, `lookup_table`, `size`, `costs`, `rent` |
//! | whether another transaction is the planned one | `comparison` |
//! | what any transaction does, and what it may cost | `explanation` |
//! | why a transaction failed | `failure` |
//! | whether a transaction of a wallet may be sent | `signed` |
//! | compute units and their price | `compute_table`, `compute_units`, `compute_budget`, `exchange` |
//! | bytes of the accounts that are loaded | `loaded_bytes` |
//! | the user's associated token accounts | `associated` |

mod account_closing;
mod account_creation;
mod associated;
pub mod comparison;
pub mod compute_budget;
pub mod compute_table;
pub mod compute_units;
pub mod costs;
mod durable_nonce;
mod exchange;
pub mod explanation;
mod failure;
pub mod loaded_bytes;
pub mod lookup_table;
pub mod plan;
mod planned_instruction;
mod platform_fee;
pub mod rent;
mod route;
mod signed;
pub mod size;
mod unsigned;
mod version;

pub use cpmm::{ExchangeIds, NotAnAddress};

pub use account_creation::AccountCreation;
pub use associated::{Associated, AssociatedAccounts};
pub use durable_nonce::{DurableNonce, NonceFault};
pub use exchange::Exchange;
pub use failure::{Failure, Raiser};
pub use lookup_table::{LookupTable, LookupTableFault};
pub use plan::{ApartSwap, SwapParts, TokenSide, TransactionPlan};
pub use planned_instruction::PlannedInstruction;
pub use platform_fee::{PlatformFee, PlatformRate};
pub use route::{Route, SwapTerms};
pub use signed::{SignedFault, SignedSwap};
pub use unsigned::{SolOutput, UnsignedTransaction};
pub use version::TransactionVersion;
