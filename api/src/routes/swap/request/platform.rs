//! Platform fields of a swap request: which part of the input another wallet gets, and which wallet.

use sluice_transaction::PlatformRate;
use solana_pubkey::Pubkey;

use super::{missing, required};
use crate::{
    error::ApiError,
    extract::{Amount, parse_pubkey},
    routes::quote::parse_platform_rate,
};

/// What a platform takes of all that the user pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The wallet that gets it.
    pub wallet: Pubkey,
    /// How much that is.
    pub rate: PlatformRate,
}

/// Reads both fields, of which none is of use without the other.
pub(super) fn platform(
    rate: Option<Amount>,
    wallet: Option<&String>,
    user: &Pubkey,
) -> Result<Option<Platform>, ApiError> {
    let wallet = wallet.map(|text| parse_pubkey("feeWallet", text));
    let Some(rate) = rate else {
        return match wallet.transpose()? {
            None => Ok(None),
            Some(_) => Err(missing("platformFeeBps")),
        };
    };
    let rate = parse_platform_rate(rate)?;
    let wallet = required("feeWallet", wallet)??;
    if wallet == *user {
        let fault =
            "is the user's own wallet; give the platform's, or leave it out with platformFeeBps";
        return Err(ApiError::invalid("feeWallet", fault));
    }
    Ok(Some(Platform { wallet, rate }))
}
