//! Compute units of the exchange's swap: a formula for every build, calibrated by what the chain used (pure).
//!
//! One formula fits every build of the exchange; its constants change with each. So a [`Profile`] is only where a
//! [`Calibration`] begins: from then on the swaps of the confirmed chain, whose logs [`exchange_calls`] reads, correct it.
//!
//! | for | see |
//! |---|---|
//! | the formula and its constants | `profile` |
//! | what the chain used, out of a transaction's logs | `log_walk`, `sample` |
//! | what was learned, and the limit that follows | `calibration`, `half_window`, `own_maximum` |
//! | the exchange's part of one transaction | `exchange_units` |

mod calibration;
mod exchange_units;
mod half_window;
mod log_walk;
mod own_maximum;
mod profile;
mod sample;

pub use calibration::{Calibration, Learned, LearnedShape, Limit, Sample, Trigger};
pub use exchange_units::ExchangeUnits;
pub use half_window::Ratio;
pub use log_walk::{ExchangeCall, LogEnd, ShortCall, exchange_calls, short_call};
pub use profile::{Profile, SwapShape, SwapUnits};
