//! The whole API over HTTP, before a node and a chain that do what a test wants.

mod client;
mod damage;
mod refusals;
mod rounds;
