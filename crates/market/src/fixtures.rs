//! Accounts of one pool as bytes, for the unit tests of the market.

use bytes::Bytes;
use cpmm::{
    AmmConfig, FeeRate, Mint, PerToken, PoolState, TokenAccount, TokenAccountKind, TokenProgram,
    fixtures::{blank_pool, published_config},
    ids,
};
use sluice_chain_types::RawAccount;
use sluice_geyser::AccountUpdate;
use solana_pubkey::Pubkey;

use crate::decoded_account::DecodedAccount;

/// The account as the market reads it at an address.
pub(crate) fn decoded(pubkey: &Pubkey, account: &RawAccount) -> DecodedAccount {
    DecodedAccount::decode(
        &ids::PROGRAM_ID,
        pubkey,
        &account.owner,
        account.lamports,
        &account.data,
    )
}

pub(crate) fn key(byte: u8) -> Pubkey {
    Pubkey::from([byte; 32])
}

pub(crate) const POOL: u8 = 1;
pub(crate) const CONFIG: u8 = 2;
pub(crate) const VAULT_0: u8 = 3;
pub(crate) const VAULT_1: u8 = 4;
pub(crate) const MINT_0: u8 = 5;
pub(crate) const MINT_1: u8 = 6;

pub(crate) fn pool_state(open_time: u64) -> PoolState {
    PoolState {
        amm_config: key(CONFIG),
        pool_creator: key(90),
        vaults: PerToken::new(key(VAULT_0), key(VAULT_1)),
        lp_mint: key(91),
        mints: PerToken::new(key(MINT_0), key(MINT_1)),
        token_programs: PerToken::new(ids::SPL_TOKEN, ids::TOKEN_2022),
        observation: key(92),
        mint_decimals: PerToken::new(6, 6),
        lp_supply: 1,
        open_time,
        ..blank_pool()
    }
}

/// An account without an address, which tests give it where they write it.
pub(crate) fn raw(owner: Pubkey, data: Vec<u8>) -> RawAccount {
    RawAccount {
        pubkey: Pubkey::default(),
        owner,
        lamports: 1,
        data: data.into(),
    }
}

pub(crate) fn pool(open_time: u64) -> RawAccount {
    raw(ids::PROGRAM_ID, pool_state(open_time).encode())
}

pub(crate) fn config() -> RawAccount {
    let config = AmmConfig {
        creator_fee_rate: FeeRate(0),
        ..published_config()
    };
    raw(ids::PROGRAM_ID, config.encode())
}

fn program_of(side: u8) -> TokenProgram {
    if side == 0 {
        TokenProgram::Spl
    } else {
        TokenProgram::Token2022
    }
}

pub(crate) fn vault(side: u8, amount: u64) -> RawAccount {
    let mint = if side == 0 { key(MINT_0) } else { key(MINT_1) };
    let account = TokenAccount {
        mint,
        owner: ids::AUTHORITY,
        amount,
        frozen: false,
    };
    raw(
        program_of(side).id(),
        account.encode(TokenAccountKind::Plain),
    )
}

pub(crate) fn mint(side: u8) -> RawAccount {
    raw(
        program_of(side).id(),
        Mint::plain(6, 1_000).encode(&key(95)),
    )
}

pub(crate) fn closed() -> RawAccount {
    RawAccount {
        pubkey: Pubkey::default(),
        owner: Pubkey::default(),
        lamports: 0,
        data: Bytes::new(),
    }
}

/// The stream's report that `account` was written.
pub(crate) fn written(
    slot: u64,
    write_version: u64,
    pubkey: Pubkey,
    account: RawAccount,
) -> AccountUpdate {
    AccountUpdate {
        slot,
        pubkey,
        owner: account.owner,
        lamports: account.lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data: account.data,
        write_version,
        txn_signature: None,
        is_startup: false,
    }
}

/// Record type of an extension that stops transfers where it names a program.
pub(crate) const TRANSFER_HOOK: u16 = 14;

/// Mint 1 with that extension.
pub(crate) fn mint_with_hook() -> RawAccount {
    let mut data = mint(1).data.to_vec();
    data.resize(cpmm::TOKEN_ACCOUNT_LEN, 0);
    data.push(1);
    data.extend(TRANSFER_HOOK.to_le_bytes());
    data.extend(64u16.to_le_bytes());
    data.extend([1; 64]);
    raw(ids::TOKEN_2022, data)
}
