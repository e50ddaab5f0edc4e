//! Which program runs at the exchange's address, as far as compute units depend on it.

/// The program that runs at the exchange's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Raydium's own.
    Raydium,
    /// The stand-in of the localnet, which is cheaper to run.
    StandIn,
}
