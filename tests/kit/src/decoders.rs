//! Every decoder of bytes from outside behind one function, for the fuzzer and for tests that mutate accounts.

use bytes::Bytes;
use cpmm::{
    AmmConfig, Mint, MintExtensions, PassedRecords, PoolState, TokenAccount, TokenAccountKind,
};
use solana_pubkey::Pubkey;

/// Feeds bytes to every decoder. None may panic, and whatever one of them understands must survive being written
/// and read again.
///
/// # Panics
/// When a decoder does, or reads back something else than was written.
pub fn decode_everything(data: &[u8]) {
    if let Ok(pool) = PoolState::decode(data) {
        assert_eq!(PoolState::decode(&pool.encode()), Ok(pool));
    }
    if let Ok(config) = AmmConfig::decode(data) {
        assert_eq!(AmmConfig::decode(&config.encode()), Ok(config));
    }
    if let Ok(mint) = Mint::decode(data) {
        // Of the extensions only the transfer fee is written.
        let plain = Mint {
            unsupported_extension: None,
            other_extensions: MintExtensions::NONE,
            passed_records: PassedRecords::NONE,
            ..mint
        };
        assert_eq!(Mint::decode(&plain.encode(&Pubkey::default())), Ok(plain));
    }
    if let Ok(account) = TokenAccount::decode(data) {
        let kinds = [
            TokenAccountKind::Plain,
            TokenAccountKind::Native { reserve: 1 },
            TokenAccountKind::WithTransferFee,
        ];
        for kind in kinds {
            assert_eq!(TokenAccount::decode(&account.encode(kind)), Ok(account));
        }
    }
    // A message of the stream: whatever it is, it must be an update, nothing, or an error.
    let _ = sluice_geyser::decode(Bytes::copy_from_slice(data));
}
