//! Client of Sluice: swaps on Raydium CPMM under an on-chain guard, and signed webhooks about what happens there.
//!
//! [`Client`] has a method for every operation of the service, made from the document in which the service describes itself, as
//! are the types in [`wire`]. Amounts are `u64`, exact to the last unit. Requests that may be repeated are, after pauses that keep
//! to `Retry-After`; [`Client::follow_quotes`] opens a lost stream again; [`webhooks::verify`] checks a delivery, and with the
//! feature `axum` a handler gets only what was verified. No crate of the validator is among its dependencies.
//!
//! ```no_run
//! # async fn run() -> Result<(), sluice_client::Error> {
//! use sluice_client::{Client, wire::GetQuoteQuery};
//!
//! let client = Client::new("https://sluice.example")?;
//! let answer = client
//!     .get_quote(&GetQuoteQuery {
//!         input_mint: "So11111111111111111111111111111111111111112".to_owned(),
//!         output_mint: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v".to_owned(),
//!         amount: 1_000_000_000,
//!         slippage_bps: Some(50),
//!         ..GetQuoteQuery::default()
//!     })
//!     .await?;
//! println!("{} at slot {}", answer.quote.out_amount, answer.context.slot);
//! # Ok(())
//! # }
//! ```

mod absent;
#[cfg(feature = "axum")]
mod axum;
mod client;
mod error;
mod items;
mod message;
mod public_key;
mod quotes;
mod request;
mod retry;
#[cfg(test)]
mod trials;
mod verify;
pub mod webhooks;

/// Types of requests and answers, one for each schema of the service's document.
#[expect(
    clippy::large_enum_variant,
    reason = "bodies are made one at a time, and boxes would stand between a caller and the names of the document"
)]
pub mod wire {
    include!(concat!(env!("OUT_DIR"), "/wire.rs"));
}

pub use self::{
    client::Client,
    error::{Error, Refusal},
    items::Items,
    quotes::QuoteStream,
};
