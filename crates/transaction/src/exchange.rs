//! Program at the exchange's address, on which the compute units of a swap depend.

/// The program that runs at the exchange's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Raydium's own.
    Raydium,
    /// The stand-in of the localnet, which is cheaper to run.
    StandIn,
}
