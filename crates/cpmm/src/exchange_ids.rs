//! Ids of the exchange on one cluster: its program, and the addresses that follow from it (pure).
//!
//! Mainnet and devnet have the same code at different addresses, and everything that names the exchange takes them from here.

use std::str::FromStr;

use solana_pubkey::{Pubkey, pubkey};
use thiserror::Error;

use crate::ids;

/// Where the exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExchangeIds {
    /// Its program, which owns pools and fee configurations.
    pub program: Pubkey,
    /// Owner of every vault.
    pub authority: Pubkey,
    /// Account of the upgradeable loader that holds its code.
    pub program_data: Pubkey,
}

/// A text that is no address of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is no address; give the exchange's program, 32 bytes in base58")]
pub struct NotAnAddress;

impl ExchangeIds {
    /// On mainnet, and on every localnet.
    pub const MAINNET: Self = Self {
        program: ids::PROGRAM_ID,
        authority: ids::AUTHORITY,
        program_data: ids::PROGRAM_DATA,
    };

    /// On devnet.
    pub const DEVNET: Self = Self {
        program: pubkey!("DRaycpLY18LhpbydsBWbVJtxpNv9oXPgjRSfpF2bWpYb"),
        authority: pubkey!("CXniRufdq5xL8t8jZAPxsPZDpuudwuJSPWnbcD5Y5Nxq"),
        program_data: pubkey!("3KvTa2fYhMxMZNfHho5oX34yLQLwRauoU2JScBkugvXF"),
    };

    /// Those of the exchange whose program is at this address.
    #[must_use]
    pub fn of(program: Pubkey) -> Self {
        let derived = |seed: &[u8], of: &Pubkey| Pubkey::find_program_address(&[seed], of).0;
        Self {
            program,
            authority: derived(ids::AUTHORITY_SEED, &program),
            program_data: derived(program.as_ref(), &ids::UPGRADEABLE_LOADER),
        }
    }

    /// Those of the program that a configuration names in base58; mainnet's where it names none.
    ///
    /// # Errors
    /// [`NotAnAddress`].
    pub fn configured(program: Option<&str>) -> Result<Self, NotAnAddress> {
        program.map_or(Ok(Self::MAINNET), str::parse)
    }
}

impl Default for ExchangeIds {
    fn default() -> Self {
        Self::MAINNET
    }
}

impl FromStr for ExchangeIds {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let program = text.parse().map_err(|_| NotAnAddress)?;
        Ok(Self::of(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_follows_from_the_programs() {
        for known in [ExchangeIds::MAINNET, ExchangeIds::DEVNET] {
            assert_eq!(ExchangeIds::of(known.program), known);
        }
    }

    #[test]
    fn a_configuration_names_the_program_or_means_mainnets() {
        assert_eq!(ExchangeIds::configured(None), Ok(ExchangeIds::MAINNET));
        let devnet = ExchangeIds::DEVNET.program.to_string();
        assert_eq!(
            ExchangeIds::configured(Some(&devnet)),
            Ok(ExchangeIds::DEVNET)
        );
        // Two digits less are always less than 32 bytes.
        for wrong in ["", "devnet", "0OIl", &devnet[2..], "1111"] {
            assert_eq!(ExchangeIds::configured(Some(wrong)), Err(NotAnAddress));
        }
    }
}
