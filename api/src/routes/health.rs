//! `/health`: liveness and readiness of the process.

pub mod live;
pub mod ready;
