//! Routes: one module per resource, one file per endpoint.

pub mod health;
pub mod keys;
pub mod mints;
pub mod pools;
pub mod priority_fees;
pub mod quote;
pub mod swap;
pub mod transactions;
pub mod webhooks;
