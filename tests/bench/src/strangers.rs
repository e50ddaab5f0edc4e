//! Memory of a market while a stranger creates and closes token accounts of the exchange's authority.

use std::{env, process::Command};

use anyhow::{Context, bail};
use bytes::Bytes;
use cpmm::{TokenAccount, TokenAccountKind, ids};
use sluice_geyser::{AccountUpdate, Body, SlotStatus, SlotUpdate, Update};
use sluice_market::replay::Replay;
use sluice_testkit::{
    figure::{Figure, Limit},
    population::{Population, clock},
};
use solana_pubkey::Pubkey;

use crate::start::resident;

/// First argument of the process that is measured.
pub const CHILD: &str = "watch-strangers";

/// Accounts that are created and closed.
const ACCOUNTS: u64 = 1_000_000;

/// Those of them in one slot: more than a block has room for.
const PER_SLOT: u64 = 5_000;

/// Slots after which what the market takes for the slots themselves has been taken.
const WARM_UP: u64 = 20;

/// Slot in which the chain begins.
const SLOT: u64 = 1_000;

/// What a million accounts leave behind.
///
/// # Errors
/// When the process cannot be started, or fails.
pub fn figures() -> anyhow::Result<Vec<Figure>> {
    let output = Command::new(env::current_exe()?).arg(CHILD).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Ok(megabytes) = text.trim().parse() else {
        bail!("the process that watches strangers said {text:?}");
    };
    Ok(vec![Figure::new(
        "1,000,000 accounts of a stranger: growth of memory",
        megabytes,
        "MB",
        Limit::AtMost(10.0),
    )])
}

/// The process: says by how many megabytes it grew.
///
/// # Errors
/// When this is no Linux, or the market leaves the chain.
pub fn watch() -> anyhow::Result<()> {
    let chain = Population {
        pools: 1_000,
        per_pair: 1,
        quote_tokens: 1,
    };
    let mut replay = Replay::begin(SLOT, chain.accounts(SLOT));
    play_slot(&mut replay, SLOT, 0..0)?;
    let mut before = None;
    let slots = ACCOUNTS / PER_SLOT;
    for index in 0..WARM_UP + slots {
        if index == WARM_UP {
            before = Some(resident()?);
        }
        let first = index * PER_SLOT;
        play_slot(&mut replay, SLOT + 1 + index, first..first + PER_SLOT)?;
    }
    let before = before.context("there is a slot after those of the warm-up")?;
    println!("{:.2}", resident()? - before);
    Ok(())
}

/// A slot in which these accounts are created, and those of the slot before are closed.
fn play_slot(replay: &mut Replay, slot: u64, created: std::ops::Range<u64>) -> anyhow::Result<()> {
    let status = |status| {
        Body::Slot(SlotUpdate {
            slot,
            parent: Some(slot - 1),
            status,
            dead_error: None,
        })
    };
    let clock = clock(slot);
    let clock = write(slot, 0, clock.pubkey, clock.owner, 1, clock.data);
    let vault = TokenAccount {
        mint: Pubkey::new_from_array([9; 32]),
        owner: ids::AUTHORITY,
        amount: 1,
        frozen: false,
    };
    let vault = Bytes::from(vault.encode(TokenAccountKind::Plain));
    let closed = created
        .clone()
        .filter_map(|number| number.checked_sub(PER_SLOT));
    let closed = closed.map(|number| {
        let owner = Pubkey::default();
        write(slot, number + 1, stranger(number), owner, 0, Bytes::new())
    });
    let created = created.map(|number| {
        let data = vault.clone();
        write(slot, number + 1, stranger(number), ids::SPL_TOKEN, 1, data)
    });
    let ends = [SlotStatus::Processed, SlotStatus::Confirmed].map(status);
    let bodies = std::iter::once(clock)
        .chain(closed)
        .chain(created)
        .chain(ends);
    for body in bodies {
        replay.update(&Update {
            filters: Vec::new(),
            created_at: None,
            bank_id: None,
            body,
        })?;
    }
    Ok(())
}

/// The address of one of the stranger's accounts.
fn stranger(number: u64) -> Pubkey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    Pubkey::from(bytes)
}

fn write(
    slot: u64,
    write_version: u64,
    pubkey: Pubkey,
    owner: Pubkey,
    lamports: u64,
    data: Bytes,
) -> Body {
    Body::Account(AccountUpdate {
        slot,
        pubkey,
        owner,
        lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data,
        write_version,
        txn_signature: None,
        is_startup: false,
    })
}
