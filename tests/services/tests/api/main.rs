//! The whole API over HTTP, before a node and a chain that a test commands.

mod browser;
mod check;
mod client;
mod crowd;
mod damage;
mod examples;
mod explain;
mod fields;
mod forms;
mod lookup_table;
mod metrics;
mod nonce;
mod pages;
mod platform;
mod pools;
mod precise_amounts;
mod priority_fees;
mod quote_stream;
mod refusals;
mod repetitions;
mod rounds;
mod rust_client;
mod sending;
mod simulation;
mod units;
mod versions;
