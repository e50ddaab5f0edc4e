//! Yellowstone gRPC stream: one connection, one subscription, every update in order, and one typed end.
//!
//! This is the only crate that names the protocol's client and message types: its versions change
//! every few weeks, and nothing outside may depend on them. A [`Stream`] is one connection with one
//! subscription. It never reconnects by itself and never drops an update silently: it delivers
//! everything the server sent, in order, and then says once why it is over. What to do then (resume,
//! or start over from a snapshot) depends on what the caller has kept, so the caller decides.

mod classify;
mod convert;
mod error;
mod generation;
mod joined_stream;
pub mod limits;
mod race;
mod reader;
mod reconnect;
mod request;
mod request_limits;
#[cfg(feature = "scripted")]
pub mod scripted;
mod server_info;
mod server_metrics;
mod servers;
pub mod slot_assembly;
mod slot_stream;
mod stream;
mod update;
mod update_queue;
mod wire;

pub use convert::decode;
pub use error::StreamError;
pub use generation::Generation;
pub use joined_stream::JoinedStream;
pub use request::{AccountFilter, Endpoint, Request, TransactionFilter};
pub use request_limits::RequestLimits;
pub use server_info::ServerInfo;
pub use server_metrics::ServerMetrics;
pub use servers::{Servers, Standing};
pub use slot_assembly::{Assembled, SlotAssembler};
pub use slot_stream::SlotStream;
pub use sluice_chain_types::{Commitment, SlotStatus};
pub use stream::Stream;
pub use update::{
    AccountUpdate, BlockMeta, Body, InnerInstruction, Instruction, SlotUpdate, TokenBalance,
    TransactionUpdate, Update,
};
