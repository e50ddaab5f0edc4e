//! Errors of the exchange: the names and meanings of its custom error codes.

/// The code of the first; the others follow in order.
const FIRST: u32 = 6000;

/// Every error, in the order of the codes: its name in the program's source, and what it means for a swap.
const ERRORS: [(&str, &str); 15] = [
    (
        "NotApproved",
        "the pool opens later, or its swaps are disabled",
    ),
    ("InvalidOwner", "the signer is not the owner"),
    ("EmptySupply", "the pool has no shares"),
    (
        "InvalidInput",
        "the amount is zero once the mint's transfer fee is taken",
    ),
    (
        "IncorrectLpMint",
        "the mint is not the one of the pool's shares",
    ),
    (
        "ExceededSlippage",
        "the pool would pay less than the minimum, or take more than the maximum; ask for a fresh quote",
    ),
    ("ZeroTradingTokens", "the fees leave nothing to trade"),
    ("NotSupportMint", "the mint is not supported"),
    ("InvalidVault", "the same vault was given twice"),
    ("InitLpAmountTooLess", "too few shares would be made"),
    (
        "TransferFeeCalculateNotMatch",
        "no amount leaves exactly the one asked for once the mint's transfer fee is taken",
    ),
    ("MathOverflow", "a sum leaves the range of 64 bits"),
    (
        "InsufficientVault",
        "a vault holds less than the fees booked against it",
    ),
    ("InvalidFeeModel", "the pool's creator-fee mode is unknown"),
    ("NoFeeCollect", "there is no fee to collect"),
];

/// Name and meaning of a custom error that the exchange raised. Codes of other programs overlap, so the caller must know that
/// the exchange itself failed.
#[must_use]
pub fn exchange_error(code: u32) -> Option<(&'static str, &'static str)> {
    let index = usize::try_from(code.checked_sub(FIRST)?).ok()?;
    ERRORS.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn the_names_are_those_of_the_codes() {
        let name = |code| exchange_error(code).map(|(name, _)| name);
        assert_eq!(name(6000), Some("NotApproved"));
        assert_eq!(name(6005), Some("ExceededSlippage"));
        assert_eq!(name(6014), Some("NoFeeCollect"));
        assert_eq!((name(5999), name(6015), name(0)), (None, None, None));
        let refused = Refusal::InsufficientVault.exchange_code().and_then(name);
        assert_eq!(refused, Some("InsufficientVault"));
    }
}
