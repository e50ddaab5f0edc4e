//! JSON-RPC of a node: blocks and accounts, for what the stream cannot replay.
//!
//! [`block`] turns the JSON of a block into the updates that the stream would have sent (pure), [`refusal`] finds
//! why a node has none (pure), and [`node`] makes the calls at a bounded rate, of which `response` reads the answers.

pub mod block;
pub mod node;
pub mod refusal;
mod response;

pub use block::{Block, BlockError};
pub use node::{Node, NodeError};
pub use refusal::Refusal;
