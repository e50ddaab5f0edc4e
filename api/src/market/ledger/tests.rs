use std::sync::Arc;

use cpmm::{Clock, PoolSnapshot, ids};
use proptest::prelude::*;

use super::{
    super::{assembly::Incomplete, fixtures::*},
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

/// A ledger with what a reader of it would see.
#[derive(Default)]
struct World {
    ledger: Ledger,
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
        self.ledger
            .account(&written(slot, write_version, key(pubkey), account))
    }

    fn told(&mut self, update: &SlotUpdate) -> &mut Self {
        self.ledger.slot(update).expect("a status in order");
        self
    }

    fn seal(&mut self, slot: u64) -> &mut Self {
        self.seal_on(slot, slot - 1)
    }

    fn seal_on(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.told(&status(slot, parent, SlotStatus::Processed))
    }

    fn confirm(&mut self, slot: u64) -> &mut Self {
        self.told(&status(slot, None, SlotStatus::Confirmed))
    }

    fn dead(&mut self, slot: u64) -> &mut Self {
        self.told(&status(slot, None, SlotStatus::Dead))
    }

    fn answer_of(context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> Answer {
        let content = |key: &Pubkey, account: &Option<RawAccount>| {
            account
                .as_ref()
                .map_or(Content::Absent, |account| account.content(key))
        };
        Answer {
            context_slot,
            accounts: accounts
                .iter()
                .map(|(byte, account)| (key(*byte), content(&key(*byte), account)))
                .collect(),
        }
    }

    fn answer(&mut self, context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> &mut Self {
        self.ledger.answer(Self::answer_of(context_slot, accounts));
        self
    }

    fn seed(&mut self, context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> &mut Self {
        self.ledger.seed(Self::answer_of(context_slot, accounts));
        self
    }

    fn pool(&self, moment: impl Fn(Visible) -> Moment) -> Option<Arc<PoolSnapshot>> {
        let moment = moment(self.ledger.visible()?);
        moment.state.pool(&key(POOL)).cloned()
    }

    fn balances(pool: &PoolSnapshot) -> (u64, u64, u64) {
        let vaults = pool.vault_amounts;
        (pool.pool.open_time, vaults.token_0, vaults.token_1)
    }

    fn quoted(&self) -> Quoted {
        self.pool(|visible| visible.processed)
            .as_deref()
            .map(Self::balances)
    }

    fn confirmed(&self) -> Quoted {
        self.pool(|visible| visible.confirmed)
            .as_deref()
            .map(Self::balances)
    }

    fn heads(&self) -> (u64, u64) {
        self.ledger.heads().expect("a root")
    }

    fn incomplete(&self) -> Vec<Incomplete> {
        let visible = self.ledger.visible().expect("a root");
        let incomplete = visible.processed.state.incomplete();
        incomplete.map(|(_, reason)| reason.clone()).collect()
    }

    /// Slot 10 is the root. The pool opens at 1 and holds 100 and 200.
    fn with_pool() -> Self {
        let mut world = Self::default();
        world.seed(
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
        world.ledger.seeded();
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
        .told(&status(11, 10, SlotStatus::CreatedBank))
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
        .write(11, 1, VAULT_0, vault(0, 120))
        .seal(11);
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
fn a_repeated_write_to_a_sealed_slot_is_ignored_and_a_new_one_is_told() {
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

#[test]
fn a_repeated_status_changes_nothing() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, vault(0, 120)).seal(11);
    let again = world.ledger.slot(&status(11, 10, SlotStatus::Processed));
    assert_eq!(again, Ok(false));
    world.confirm(11);
    let again = world.ledger.slot(&status(11, None, SlotStatus::Confirmed));
    assert_eq!(again, Ok(false));
}

#[test]
fn a_dead_slot_falls_back_to_what_is_left() {
    let mut world = World::with_pool();
    world
        .write(11, 1, VAULT_0, vault(0, 111))
        .seal(11)
        .write(12, 2, VAULT_0, vault(0, 112))
        .seal(12)
        .write(13, 3, VAULT_0, vault(0, 113))
        .seal(13)
        .dead(12);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((11, 10), Some((1, 111, 200)))
    );
    // The validator may repair the slot and run it again.
    world.write(12, 9, VAULT_0, vault(0, 222)).seal(12);
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 10), Some((1, 222, 200)))
    );
}

#[test]
fn a_dead_root_is_told() {
    let mut world = World::with_pool();
    let dead = world.ledger.slot(&status(10, 9, SlotStatus::Dead));
    assert_eq!(dead, Err(Divergence::DeadRoot { slot: 10 }));
}

#[test]
fn the_highest_branch_shows_until_another_is_confirmed() {
    let mut world = World::with_pool();
    world
        .write(11, 1, VAULT_0, vault(0, 111))
        .seal(11)
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
fn a_confirmation_counts_whenever_it_comes() {
    let mut world = World::with_pool();
    world
        .confirm(12)
        .write(12, 2, VAULT_0, vault(0, 112))
        .seal(12);
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
        .told(&status(11, None, SlotStatus::Processed));
    assert_eq!(world.heads(), (10, 10));
    world.told(&status(11, 10, SlotStatus::Completed));
    assert_eq!(
        (world.heads(), world.quoted()),
        ((12, 10), Some((1, 112, 200)))
    );
}

#[test]
fn a_slot_with_two_parents_is_told() {
    let mut world = World::with_pool();
    world.told(&status(12, 11, SlotStatus::CreatedBank));
    let other = world.ledger.slot(&status(12, 10, SlotStatus::Processed));
    let (slot, before, now) = (12, 11, 10);
    assert_eq!(other, Err(Divergence::TwoParents { slot, before, now }));
}

#[test]
fn slots_that_build_on_nothing_are_told_after_a_while() {
    let mut world = World::with_pool();
    let last = 20 + MAX_ORPHANS as u64;
    for slot in 20..last {
        world.seal(slot);
    }
    let told = world
        .ledger
        .slot(&status(last, last - 1, SlotStatus::Processed));
    assert_eq!(told, Err(Divergence::Orphans { slot: last }));
}

#[test]
fn after_a_rewind_the_replay_is_built_on_the_root() {
    let mut world = World::with_pool();
    world
        .write(11, 1, VAULT_0, vault(0, 111))
        .seal(11)
        .confirm(11)
        .write(12, 2, VAULT_0, vault(0, 112))
        .seal(12);
    assert_eq!(world.ledger.rewind(), Some(11));
    assert_eq!(world.quoted(), Some((1, 111, 200)));
    // Another server: other write versions, and of the root only the last writes.
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
fn a_closed_vault_takes_the_pool_away_and_a_new_one_brings_it_back() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, closed()).seal(11);
    assert_eq!(world.quoted(), None);
    let (what, key) = ("vault", key(VAULT_0));
    assert_eq!(world.incomplete(), [Incomplete::Absent { what, key }]);
    world.write(12, 2, VAULT_0, vault(0, 5)).seal(12);
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
fn accounts_that_no_pool_has_are_not_kept() {
    let mut world = World::with_pool();
    world
        .write(11, 1, 200, closed())
        .write(11, 2, 201, mint(1))
        .seal(11);
    let state = world.ledger.visible().expect("a root").processed.state;
    assert_eq!(state.account(&key(200)), None);
    assert_eq!(state.account(&key(201)), None);
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
    world.ledger.account(&clock).expect("in order");
    world.write(11, 2, MINT_1, mint_with_hook()).seal(11);
    let state = world.ledger.visible().expect("a root").processed.state;
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

#[test]
fn a_new_pool_appears_when_its_mints_were_read() {
    let mut world = World::default();
    world.seed(10, &[]);
    world.ledger.seeded();
    world
        .seal(10)
        .write(11, 1, POOL, pool(1))
        .write(11, 2, CONFIG, config())
        .write(11, 3, VAULT_0, vault(0, 100))
        .write(11, 4, VAULT_1, vault(1, 200))
        .seal(11);
    assert_eq!(world.quoted(), None);
    assert_eq!(world.ledger.take_wanted(), [key(MINT_0), key(MINT_1)]);
    assert!(world.ledger.take_wanted().is_empty(), "asked for once");
    world.answer(13, &[(MINT_0, Some(mint(0))), (MINT_1, Some(mint(1)))]);
    world.seal(12);
    assert_eq!(world.quoted(), None, "the answer is of slot 13");
    world.seal(13);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    world.seal(14);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
}

#[test]
fn parts_that_were_asked_for_on_a_lost_connection_are_asked_for_again() {
    let mut world = World::with_pool();
    let mut other = pool_state(3);
    other.mints.token_0 = key(77);
    world
        .write(11, 1, 50, raw(ids::PROGRAM_ID, other.encode()))
        .seal(11)
        .confirm(11);
    assert_eq!(world.ledger.take_wanted(), [key(77)]);
    world.ledger.rewind();
    assert_eq!(world.ledger.take_wanted(), [key(77)]);
    world.answer(11, &[(77, None)]);
    world.write(12, 2, POOL, pool(2)).seal(12);
    assert!(world.ledger.take_wanted().is_empty(), "it does not exist");
}

#[test]
fn an_answer_does_not_replace_what_the_stream_wrote_after_it() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, vault(0, 120)).seal(11);
    world.answer(10, &[(VAULT_0, Some(vault(0, 100)))]).seal(12);
    assert_eq!(world.quoted(), Some((1, 120, 200)));
}

proptest! {
    /// A chain of slots with writes to the vaults, which were read at two slots of it, begins at the
    /// later one and always shows the chain's balances at the last sealed slot.
    #[test]
    fn whenever_the_first_answers_were_read_the_balances_are_the_chains(
        mut writes in proptest::collection::vec((1u64..30, any::<bool>(), any::<u64>()), 0..40),
        read_at in (5u64..20, 5u64..20),
        delivered_at in 5u64..29,
    ) {
        writes.sort_by_key(|(slot, ..)| *slot);
        let at = |slot: u64, side: bool| {
            writes.iter().rev().find(|w| w.0 <= slot && w.1 == side).map_or(7, |w| w.2)
        };
        let mut world = World::default();
        for slot in 3..30 {
            for (version, (_, side, amount)) in writes.iter().enumerate().filter(|(_, w)| w.0 == slot) {
                let (key, side) = if *side { (VAULT_1, 1) } else { (VAULT_0, 0) };
                world.write(slot, version as u64, key, vault(side, *amount));
            }
            if slot == delivered_at {
                world
                    .seed(read_at.0, &[
                        (POOL, Some(pool(1))),
                        (CONFIG, Some(config())),
                        (VAULT_0, Some(vault(0, at(read_at.0, false)))),
                    ])
                    .seed(read_at.1, &[
                        (VAULT_1, Some(vault(1, at(read_at.1, true)))),
                        (MINT_0, Some(mint(0))),
                        (MINT_1, Some(mint(1))),
                    ]);
                world.ledger.seeded();
            }
            world.seal(slot);
            let root = read_at.0.max(read_at.1);
            let begun = slot >= delivered_at && slot >= root;
            let expected = begun.then(|| (1, at(slot, false), at(slot, true)));
            prop_assert_eq!(world.quoted(), expected);
        }
        prop_assert!(world.ledger.heads().is_some());
    }
}
