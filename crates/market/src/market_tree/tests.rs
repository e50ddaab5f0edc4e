//! Forks, statuses and writes of the market tree.

use std::sync::Arc;

use cpmm::{Clock, PoolSnapshot, ids};
use sluice_chain_types::RawAccount;

mod snapshots;

use super::{
    super::{dependencies::Incomplete, fixtures::*, missing_accounts::FIRST_WAIT_SLOTS},
    *,
};

fn status(slot: u64, parent: impl Into<Option<u64>>, status: SlotStatus) -> SlotUpdate {
    SlotUpdate {
        slot,
        parent: parent.into(),
        status,
        dead_error: None,
    }
}

/// Open time and vault balances of the pool.
type Quoted = Option<(u64, u64, u64)>;

/// A tree with what a reader of it would see.
#[derive(Default)]
struct World {
    tree: MarketTree,
}

impl World {
    fn write(
        &mut self,
        slot: u64,
        write_version: u64,
        pubkey: u8,
        account: RawAccount,
    ) -> &mut Self {
        self.try_write(slot, write_version, pubkey, account)
            .expect("a write in order");
        self
    }

    fn try_write(
        &mut self,
        slot: u64,
        write_version: u64,
        pubkey: u8,
        account: RawAccount,
    ) -> Result<(), Divergence> {
        self.tree
            .account(&written(slot, write_version, key(pubkey), account))
    }

    fn report(&mut self, update: &SlotUpdate) -> &mut Self {
        self.tree.slot(update).expect("a status in order");
        self
    }

    fn seal(&mut self, slot: u64) -> &mut Self {
        self.seal_on(slot, slot - 1)
    }

    fn seal_on(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.report(&status(slot, parent, SlotStatus::Processed))
    }

    /// A sealed slot on the one before, in which the first vault comes to hold this amount.
    fn seal_with_vault(&mut self, slot: u64, amount: u64) -> &mut Self {
        self.write(slot, slot - 10, VAULT_0, vault(0, amount))
            .seal(slot)
    }

    fn confirm(&mut self, slot: u64) -> &mut Self {
        self.report(&status(slot, None, SlotStatus::Confirmed))
    }

    fn dead(&mut self, slot: u64) -> &mut Self {
        self.report(&status(slot, None, SlotStatus::Dead))
    }

    fn snapshot_of(context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> AccountSnapshot {
        let found = |key: &Pubkey, account: &Option<RawAccount>| {
            account
                .as_ref()
                .map_or(DecodedAccount::Absent, |account| decoded(key, account))
        };
        AccountSnapshot {
            context_slot,
            accounts: accounts
                .iter()
                .map(|(byte, account)| (key(*byte), found(&key(*byte), account)))
                .collect(),
        }
    }

    fn snapshot(&mut self, context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> &mut Self {
        self.tree
            .snapshot(Self::snapshot_of(context_slot, accounts));
        self
    }

    fn first_snapshot(
        &mut self,
        context_slot: u64,
        accounts: &[(u8, Option<RawAccount>)],
    ) -> &mut Self {
        self.tree
            .first_snapshot(Self::snapshot_of(context_slot, accounts));
        self
    }

    fn pool(&self, of: impl Fn(HeadStates) -> SlotState) -> Option<Arc<PoolSnapshot>> {
        let shown = of(self.tree.head_states()?);
        shown.state.pool(&key(POOL)).cloned()
    }

    fn balances(pool: &PoolSnapshot) -> (u64, u64, u64) {
        let vaults = pool.vault_amounts;
        (
            pool.pool.open_time,
            vaults.token_0.get(),
            vaults.token_1.get(),
        )
    }

    fn quoted(&self) -> Quoted {
        self.pool(|heads| heads.processed)
            .as_deref()
            .map(Self::balances)
    }

    fn confirmed(&self) -> Quoted {
        self.pool(|heads| heads.confirmed)
            .as_deref()
            .map(Self::balances)
    }

    /// Supply of the pool's first mint, which is one of SPL Token.
    fn supply_0(&self) -> Option<u64> {
        let pool = self.pool(|heads| heads.processed)?;
        pool.mints.token_0.supply
    }

    /// Processed head and confirmed head.
    fn heads(&self) -> (u64, u64) {
        let heads = self.tree.processed_head().zip(self.tree.confirmed_head);
        heads.expect("the bootstrap is done")
    }

    fn incomplete(&self) -> Vec<Incomplete> {
        let heads = self.tree.head_states().expect("the bootstrap is done");
        let incomplete = heads.processed.state.incomplete();
        incomplete.map(|(_, reason)| reason.clone()).collect()
    }

    /// Slot 10 is the confirmed head. The pool opens at 1 and holds 100 and 200.
    fn with_pool() -> Self {
        let mut world = Self::default();
        world.first_snapshot(
            10,
            &[
                (POOL, Some(pool(1))),
                (CONFIG, Some(config())),
                (VAULT_0, Some(vault(0, 100))),
                (VAULT_1, Some(vault(1, 200))),
                (MINT_0, Some(mint(0))),
                (MINT_1, Some(mint(1))),
            ],
        );
        world.tree.first_snapshots_complete();
        world.seal(10);
        assert_eq!(
            (world.heads(), world.quoted()),
            ((10, 10), Some((1, 100, 200)))
        );
        world
    }
}

#[test]
fn a_pool_and_its_vaults_change_together_when_the_slot_is_sealed() {
    let mut world = World::with_pool();
    world
        .report(&status(11, 10, SlotStatus::CreatedBank))
        .write(11, 1, VAULT_0, vault(0, 110))
        .write(11, 2, POOL, pool(2));
    assert_eq!(world.quoted(), Some((1, 100, 200)), "slot 11 is not sealed");
    world.write(11, 3, VAULT_1, vault(1, 190)).seal(11);
    assert_eq!(world.quoted(), Some((2, 110, 190)));
    assert_eq!(world.confirmed(), Some((1, 100, 200)));
    world.confirm(11);
    assert_eq!(world.confirmed(), Some((2, 110, 190)));
}

#[test]
fn writes_of_a_later_slot_wait_while_an_earlier_one_is_sealed() {
    let mut world = World::with_pool();
    world
        .write(12, 9, VAULT_0, vault(0, 130))
        .seal_with_vault(11, 120);
    assert_eq!(world.quoted(), Some((1, 120, 200)));
    world.seal(12);
    assert_eq!(world.quoted(), Some((1, 130, 200)));
}

#[test]
fn of_the_writes_in_one_slot_the_highest_write_version_stays_whatever_the_order() {
    let mut world = World::with_pool();
    world
        .write(11, 7, VAULT_0, vault(0, 107))
        .write(11, 5, VAULT_0, vault(0, 105))
        .seal(11);
    assert_eq!(world.quoted(), Some((1, 107, 200)));
}

#[test]
fn a_repeated_write_to_a_sealed_slot_is_ignored_and_a_new_one_is_reported() {
    let mut world = World::with_pool();
    world.write(11, 7, VAULT_0, vault(0, 107)).seal(11);
    world
        .write(11, 7, VAULT_0, vault(0, 107))
        .write(11, 6, VAULT_0, vault(0, 1))
        .write(11, 8, VAULT_1, vault(1, 200));
    let late = world.try_write(11, 8, VAULT_0, vault(0, 108));
    let (slot, pubkey) = (11, key(VAULT_0));
    assert_eq!(late, Err(Divergence::LateWrite { slot, pubkey }));
}

/// Slot 11, of which its creation and a write of the first vault came ahead.
fn with_a_write_ahead() -> World {
    let mut world = World::with_pool();
    let created = Body::Slot(status(11, 10, SlotStatus::CreatedBank));
    let write = Body::Account(written(11, 7, key(VAULT_0), vault(0, 107)));
    for body in [created, write] {
        world.tree.ahead(&body).expect("in order");
    }
    assert_eq!(world.quoted(), Some((1, 100, 200)), "nobody sees it");
    world
}

#[test]
fn what_came_ahead_of_a_slot_is_part_of_it_when_it_is_sealed() {
    let mut world = with_a_write_ahead();
    world.report(&status(11, 10, SlotStatus::CreatedBank));
    world.write(11, 8, VAULT_1, vault(1, 190)).seal(11);
    assert_eq!(world.quoted(), Some((1, 107, 190)));
    world.tree.void(11);
    assert_eq!(world.quoted(), Some((1, 107, 190)), "it is sealed");
}

#[test]
fn what_came_ahead_of_a_slot_and_is_void_is_no_part_of_it() {
    let mut world = with_a_write_ahead();
    world.tree.void(11);
    // As another server numbers its writes.
    world.report(&status(11, 10, SlotStatus::CreatedBank));
    world.write(11, 3, VAULT_1, vault(1, 190)).seal(11);
    assert_eq!(world.quoted(), Some((1, 100, 190)));
}

#[test]
fn a_repeated_status_changes_nothing() {
    let mut world = World::with_pool();
    world.seal_with_vault(11, 120);
    let again = world.tree.slot(&status(11, 10, SlotStatus::Processed));
    assert_eq!(again, Ok(false));
    world.confirm(11);
    let again = world.tree.slot(&status(11, None, SlotStatus::Confirmed));
    assert_eq!(again, Ok(false));
}

#[test]
fn a_dead_slot_falls_back_to_what_is_left() {
    let mut world = World::with_pool();
    world
        .seal_with_vault(11, 111)
        .seal_with_vault(12, 112)
        .seal_with_vault(13, 113)
        .dead(12);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((11, 10), Some((1, 111, 200)))
    );
    world.seal(12);
    assert_eq!(
        world.heads(),
        (11, 10),
        "reported once more, and still dead"
    );
    // The validator may repair the slot and run it again.
    world
        .report(&status(12, 11, SlotStatus::CreatedBank))
        .write(12, 9, VAULT_0, vault(0, 222))
        .seal(12);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 10), Some((1, 222, 200)))
    );
}

#[test]
fn a_dead_confirmed_slot_is_reported() {
    let mut world = World::with_pool();
    let dead = world.tree.slot(&status(10, 9, SlotStatus::Dead));
    assert_eq!(dead, Err(Divergence::DeadConfirmedSlot { slot: 10 }));
}

#[test]
fn the_highest_fork_shows_until_another_is_confirmed() {
    let mut world = World::with_pool();
    world
        .seal_with_vault(11, 111)
        .write(12, 2, VAULT_0, vault(0, 112))
        .seal_on(12, 10);
    assert_eq!(world.quoted(), Some((1, 112, 200)));
    world.write(13, 3, VAULT_1, vault(1, 213)).seal_on(13, 11);
    assert_eq!(world.quoted(), Some((1, 111, 213)));
    world
        .write(14, 4, VAULT_1, vault(1, 214))
        .seal_on(14, 12)
        .confirm(11);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((13, 11), Some((1, 111, 213)))
    );
    world.seal_on(15, 14);
    assert_eq!(world.heads(), (13, 11), "slot 14 was abandoned");
}

#[test]
fn a_short_fork_with_a_high_number_does_not_show() {
    let mut world = World::with_pool();
    world
        .seal_with_vault(11, 111)
        .seal_with_vault(12, 112)
        .write(13, 3, VAULT_0, vault(0, 113))
        .seal_on(13, 10);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 10), Some((1, 112, 200)))
    );
    world.seal_on(14, 12);
    assert_eq!(world.heads(), (14, 10));
    world.confirm(13);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((13, 13), Some((1, 113, 200))),
        "what is confirmed shows, however short"
    );
}

#[test]
fn a_confirmation_counts_whenever_it_comes() {
    let mut world = World::with_pool();
    world.confirm(12).seal_with_vault(12, 112);
    assert_eq!(
        world.heads(),
        (10, 10),
        "the parent of slot 12 is not complete"
    );
    world.seal(11);
    assert_eq!(
        (world.heads(), world.confirmed()),
        ((12, 12), Some((1, 112, 200)))
    );
    world.confirm(11).confirm(9);
    assert_eq!(world.heads(), (12, 12), "a confirmed slot never goes back");
}

#[test]
fn a_slot_waits_for_its_parent_and_for_the_name_of_it() {
    let mut world = World::with_pool();
    world
        .write(12, 2, VAULT_0, vault(0, 112))
        .seal_on(12, 11)
        .report(&status(11, None, SlotStatus::Processed));
    assert_eq!(world.heads(), (10, 10));
    world.report(&status(11, 10, SlotStatus::Completed));
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 10), Some((1, 112, 200)))
    );
}

#[test]
fn a_slot_with_two_parents_is_reported() {
    let mut world = World::with_pool();
    world.report(&status(12, 11, SlotStatus::CreatedBank));
    let other = world.tree.slot(&status(12, 10, SlotStatus::Processed));
    let (slot, before, now) = (12, 11, 10);
    assert_eq!(other, Err(Divergence::TwoParents { slot, before, now }));
}

#[test]
fn slots_that_build_on_nothing_are_reported_after_a_while() {
    let mut world = World::with_pool();
    let last = 20 + MAX_ORPHANS as u64;
    for slot in 20..last {
        world.seal(slot);
    }
    let reported = world
        .tree
        .slot(&status(last, last - 1, SlotStatus::Processed));
    assert_eq!(reported, Err(Divergence::Orphans { slot: last }));
}

#[test]
fn after_a_rewind_the_replay_is_built_on_the_confirmed_head() {
    let mut world = World::with_pool();
    world
        .seal_with_vault(11, 111)
        .confirm(11)
        .seal_with_vault(12, 112);
    assert_eq!(world.tree.rewind(), Some(11));
    assert_eq!(world.quoted(), Some((1, 111, 200)));
    // Another server: other write versions, and of the confirmed head only the last writes.
    world
        .write(11, 900, VAULT_0, vault(0, 111))
        .seal(11)
        .confirm(11)
        .write(12, 901, VAULT_0, vault(0, 212))
        .seal(12);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 11), Some((1, 212, 200)))
    );
}

#[test]
fn half_a_slot_is_not_taken_for_a_whole_one_when_nothing_is_replayed() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, vault(0, 111));
    world.tree.rewind();
    world.write(11, 2, VAULT_1, vault(1, 211)).seal(11);
    assert_eq!(
        world.heads(),
        (10, 10),
        "the first write of slot 11 is lost"
    );
}

#[test]
fn a_confirmed_slot_that_is_not_complete_confirms_what_it_builds_on() {
    let mut world = World::with_pool();
    world
        .seal_with_vault(11, 111)
        .report(&status(12, 11, SlotStatus::CreatedBank))
        .confirm(12);
    assert_eq!(world.confirmed(), Some((1, 111, 200)));
}

#[test]
fn a_closed_vault_takes_the_pool_away_and_a_new_one_brings_it_back() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, closed()).seal(11);
    assert_eq!(world.quoted(), None);
    let (what, key) = ("vault", key(VAULT_0));
    assert_eq!(world.incomplete(), [Incomplete::Absent { what, key }]);
    world.seal_with_vault(12, 5);
    assert_eq!(world.quoted(), Some((1, 5, 200)));
    assert!(world.incomplete().is_empty());
}

#[test]
fn a_closed_pool_disappears_and_lacks_nothing() {
    let mut world = World::with_pool();
    world.write(11, 1, POOL, closed()).seal(11);
    assert_eq!(world.quoted(), None);
    assert!(world.incomplete().is_empty());
}

#[test]
fn a_vault_of_another_mint_or_program_does_not_complete_a_pool() {
    let mut world = World::with_pool();
    let mut foreign = vault(0, 100);
    foreign.owner = ids::TOKEN_2022;
    world.write(11, 1, VAULT_0, foreign).seal(11);
    assert_eq!(world.quoted(), None);
    world.write(12, 2, VAULT_0, vault(1, 100)).seal(12);
    assert_eq!(world.quoted(), None);
}

#[test]
fn the_chains_time_and_a_mints_fee_follow_the_stream() {
    let mut world = World::with_pool();
    let fields = [11u64, 0, 600, 601, 1_700_000_000];
    let data: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_le_bytes())
        .collect();
    let clock = written(11, 1, ids::CLOCK, raw(key(99), data));
    world.tree.account(&clock).expect("in order");
    world.write(11, 2, MINT_1, mint_with_hook()).seal(11);
    let state = world
        .tree
        .head_states()
        .expect("the bootstrap is done")
        .processed
        .state;
    let (epoch, unix_timestamp) = (600, 1_700_000_000);
    assert_eq!(
        state.clock(),
        Some(Clock {
            epoch,
            unix_timestamp
        })
    );
    let mints = &state.pool(&key(POOL)).expect("a pool").mints;
    assert_eq!(mints.token_1.unsupported_extension, Some(TRANSFER_HOOK));
}
