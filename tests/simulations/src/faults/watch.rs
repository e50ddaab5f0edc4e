//! Reader that never stops looking: everything it sees must be the whole truth of one slot.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cpmm::{PoolSnapshot, ids};
use sluice_testkit::{
    accounts::Content,
    scripted_chain::{ChainRecord, ScriptedChain},
};
use solana_pubkey::Pubkey;
use tokio::{task::AbortHandle, time::sleep};

use super::{
    model::QuotedState,
    observed::{Level, Reader},
};

/// Between two looks: several to every message of a script, without starving the market of a core.
const PAUSE: Duration = Duration::from_micros(500);

/// Both views, the newer one first.
const LEVELS: [Level; 2] = [Level::Processed, Level::Confirmed];

/// Watches one market. Dropping it ends it.
pub struct Watch {
    faults: Arc<Mutex<BTreeSet<String>>>,
    watching: AbortHandle,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Watch {
    /// Begins to watch.
    #[must_use]
    pub fn start(record: ScriptedChain, reader: Reader) -> Self {
        let faults = Arc::<Mutex<BTreeSet<String>>>::default();
        let found = Arc::clone(&faults);
        let watching = tokio::spawn(async move {
            let mut looked = Looked::default();
            loop {
                let fault = looked.look(&record, &reader);
                if let Some(fault) = fault {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.insert(fault);
                }
                sleep(PAUSE).await;
            }
        });
        Self {
            faults,
            watching: watching.abort_handle(),
        }
    }

    /// What was wrong so far, in words.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter().cloned().collect()
    }
}

/// Looks between two whole comparisons of a slot that was compared before.
const LOOKS_AT_THE_SAME: u32 = 16;

#[derive(Default)]
struct Looked {
    confirmed: u64,
    compared: [u64; 2],
    since: u32,
}

impl Looked {
    fn look(&mut self, record: &ScriptedChain, reader: &Reader) -> Option<String> {
        let slots = LEVELS.map(|level| reader.slot(level).unwrap_or(0));
        self.since += 1;
        if slots == self.compared && self.since < LOOKS_AT_THE_SAME {
            return None;
        }
        (self.compared, self.since) = (slots, 0);
        let seen = LEVELS.map(|level| reader.moment(level));
        let record = record.lock();
        if let [_, Some(confirmed)] = &seen {
            let before = self.confirmed;
            self.confirmed = before.max(confirmed.slot);
            if confirmed.slot < before {
                return Some(format!(
                    "the confirmed view went back from slot {before} to {}",
                    confirmed.slot
                ));
            }
            if !is_confirmed(&record, confirmed.slot) {
                return Some(format!(
                    "slot {} was shown as confirmed and is not",
                    confirmed.slot
                ));
            }
        }
        let mut seen = LEVELS.into_iter().zip(seen);
        seen.find_map(|(level, seen)| {
            let fault = untrue(&record, &seen?)?;
            Some(format!("{level:?}: {fault}"))
        })
    }
}

/// Whether the stream or the node ever said so, of the slot or of a descendant.
fn is_confirmed(record: &ChainRecord, slot: u64) -> bool {
    let tips = [record.statuses.confirmed_slot(), record.node_slot(false)];
    tips.into_iter().any(|tip| {
        let mut ancestry = std::iter::successors(Some(tip), |slot| record.tree.parent(*slot));
        ancestry.any(|ancestor| ancestor == slot)
    })
}

/// What is untrue about a moment that was seen, whatever else may be true at the same time.
fn untrue(record: &ChainRecord, seen: &QuotedState) -> Option<String> {
    let mut allowed = record.states(seen.slot).peekable();
    if allowed.peek().is_none() {
        return Some(format!("slot {} was shown before it was sealed", seen.slot));
    }
    let young = |key: &Pubkey, pool: &PoolSnapshot| waits_for_rpc(record, key, pool);
    let mut differences =
        allowed.map(|state| differing(seen, &QuotedState::of(seen.slot, state), young));
    // One moment that fits is enough.
    differences.try_fold(None, |_, difference| difference.map(Some))?
}

/// The first difference between what was seen and a moment. `may_miss` says which pools need not be there.
#[must_use]
pub fn differing(
    seen: &QuotedState,
    moment: &QuotedState,
    may_miss: impl Fn(&Pubkey, &PoolSnapshot) -> bool,
) -> Option<String> {
    let slot = seen.slot;
    if slot != moment.slot {
        return Some(format!("slot {slot} is shown instead of {}", moment.slot));
    }
    if seen.clock != moment.clock {
        return Some(format!(
            "slot {slot}: the clock is {:?} instead of {:?}",
            seen.clock, moment.clock
        ));
    }
    if let Some(pool) = seen
        .pools
        .keys()
        .find(|pool| !moment.pools.contains_key(*pool))
    {
        return Some(format!("slot {slot}: pool {pool} is shown and must not be"));
    }
    moment
        .pools
        .iter()
        .find_map(|(key, pool)| match seen.pools.get(key) {
            Some(seen) if is_same(seen, pool) => None,
            Some(seen) => Some(format!(
                "slot {slot}: pool {key} is torn or stale:\nseen {}\nreal {}",
                brief(seen),
                brief(pool)
            )),
            None if may_miss(key, pool) => None,
            None => Some(format!(
                "slot {slot}: pool {key} of mints {:?} is missing",
                pool.pool.mints
            )),
        })
}

/// Whether a pool is what it was seen as. The supply of a mint, which no quote needs, may be unknown.
fn is_same(seen: &PoolSnapshot, pool: &PoolSnapshot) -> bool {
    let mut seen = seen.clone();
    for (seen, real) in [
        (&mut seen.mints.token_0, &pool.mints.token_0),
        (&mut seen.mints.token_1, &pool.mints.token_1),
    ] {
        if seen.supply.is_none() {
            Arc::make_mut(seen).supply = real.supply;
        }
    }
    seen == *pool
}

/// Whether the market may have to read an account of the pool, which takes a moment. The stream shows the accounts of a pool
/// from the slot that opens it, and mints of Token-2022 whenever they are written, but a market that began again has seen
/// nothing of what is older, and a vault that no pool names is forgotten. A mint of SPL Token is not waited for.
fn waits_for_rpc(record: &ChainRecord, key: &Pubkey, pool: &PoolSnapshot) -> bool {
    let (first, last) = (record.tree.genesis(), record.tree.last());
    let lacks = |slot: u64, part: &Pubkey| {
        let content = record.tree.get(slot, part);
        matches!(content, None | Some(Content::Closed))
    };
    let exists = |slot: &u64| *slot == first || record.tree.parent(*slot).is_some();
    let slots = || (first..=last).filter(exists);
    let without_pool = || slots().filter(|slot| lacks(*slot, key));
    let state = &pool.pool;
    let vaults = [state.vaults.token_0, state.vaults.token_1];
    if without_pool().any(|slot| vaults.iter().any(|vault| !lacks(slot, vault))) {
        return true;
    }
    let (programs, mints) = (&state.token_programs, &state.mints);
    let mints = [
        (programs.token_0, mints.token_0),
        (programs.token_1, mints.token_1),
    ];
    let mut followed = mints
        .iter()
        .filter(|(program, _)| *program == ids::TOKEN_2022);
    followed.any(|(_, mint)| without_pool().any(|slot| !lacks(slot, mint)))
}

/// What a swap moves.
fn brief(pool: &PoolSnapshot) -> String {
    format!(
        "vaults {:?} protocol fees {:?} open time {} status {} trade fee {:?} creator fee {:?} transfer fees {:?}",
        pool.vault_amounts,
        pool.pool.protocol_fees,
        pool.pool.open_time,
        pool.pool.status,
        pool.config.trade_fee_rate,
        pool.config.creator_fee_rate,
        (
            pool.mints.token_0.transfer_fee,
            pool.mints.token_1.transfer_fee
        ),
    )
}
