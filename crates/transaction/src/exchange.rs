//! Program at the exchange's address, on which the compute units of a swap depend.

use crate::compute_units::Profile;

/// The program that runs at the exchange's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Raydium's own.
    Raydium,
    /// The stand-in of the localnet, which is cheaper to run.
    StandIn,
}

impl Exchange {
    /// Where calibration of its compute units begins.
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::Raydium => Profile::MAINNET,
            Self::StandIn => Profile::STAND_IN,
        }
    }
}
