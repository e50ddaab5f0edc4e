use proptest::prelude::*;

use super::{super::fixtures::*, *};

fn write(slot: u64, write_version: u64, pubkey: u8, account: RawAccount) -> AccountUpdate {
    written(slot, write_version, key(pubkey), account)
}

fn status(slot: u64, parent: u64, status: SlotStatus) -> SlotUpdate {
    SlotUpdate {
        slot,
        parent: Some(parent),
        status,
        dead_error: None,
    }
}

/// A ledger with what a reader of it would see.
#[derive(Default)]
struct World {
    ledger: Ledger,
    visible: HashMap<Pubkey, Arc<PoolSnapshot>>,
}

impl World {
    fn write(
        &mut self,
        slot: u64,
        write_version: u64,
        pubkey: u8,
        account: RawAccount,
    ) -> &mut Self {
        let update = write(slot, write_version, pubkey, account);
        self.ledger.account(update).expect("a write in order");
        self
    }

    fn seal(&mut self, slot: u64) -> &mut Self {
        self.seal_on(slot, slot - 1)
    }

    fn seal_on(&mut self, slot: u64, parent: u64) -> &mut Self {
        let update = status(slot, parent, SlotStatus::Processed);
        let sealed = self
            .ledger
            .slot(&update)
            .expect("a slot in order")
            .expect("a new slot");
        assert_eq!(sealed.slot, slot);
        for (pool, state) in sealed.pools {
            match state {
                Some(state) => self.visible.insert(pool, state),
                None => self.visible.remove(&pool),
            };
        }
        self
    }

    fn snapshot(&mut self, context_slot: u64, accounts: &[(u8, Option<RawAccount>)]) -> &mut Self {
        let accounts = accounts
            .iter()
            .map(|(k, account)| (key(*k), account.clone()))
            .collect();
        self.ledger.snapshot(Batch {
            context_slot,
            accounts,
        });
        self
    }

    /// Open time and vault balances of the pool, if it can be quoted.
    fn quoted(&self) -> Option<(u64, u64, u64)> {
        let pool = self.visible.get(&key(POOL))?;
        Some((
            pool.pool.open_time,
            pool.vault_amounts.token_0,
            pool.vault_amounts.token_1,
        ))
    }

    /// A complete pool as of slot 10: open time 1, balances 100 and 200.
    fn with_pool() -> Self {
        let mut world = Self::default();
        world.seal(10).snapshot(
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
        world.seal(11);
        assert_eq!(world.quoted(), Some((1, 100, 200)));
        world
    }
}

#[test]
fn a_pool_and_its_vaults_change_together_when_the_slot_is_sealed() {
    let mut world = World::with_pool();
    world
        .write(12, 1, VAULT_0, vault(0, 110))
        .write(12, 2, POOL, pool(2));
    assert_eq!(
        world.quoted(),
        Some((1, 100, 200)),
        "nothing shows before the slot is sealed"
    );
    world.write(12, 3, VAULT_1, vault(1, 190)).seal(12);
    assert_eq!(world.quoted(), Some((2, 110, 190)));
}

#[test]
fn writes_of_a_later_slot_wait_while_an_earlier_one_is_sealed() {
    let mut world = World::with_pool();
    world
        .write(13, 9, VAULT_0, vault(0, 130))
        .write(12, 1, VAULT_0, vault(0, 120))
        .seal(12);
    assert_eq!(world.quoted(), Some((1, 120, 200)));
    world.seal(13);
    assert_eq!(world.quoted(), Some((1, 130, 200)));
}

#[test]
fn of_the_writes_in_one_slot_the_highest_write_version_stays_whatever_the_order() {
    let mut world = World::with_pool();
    world
        .write(12, 7, VAULT_0, vault(0, 107))
        .write(12, 5, VAULT_0, vault(0, 105))
        .seal(12);
    assert_eq!(world.quoted(), Some((1, 107, 200)));
}

#[test]
fn a_repeated_write_to_a_sealed_slot_is_ignored_and_a_new_one_is_not_joined_silently() {
    let mut world = World::with_pool();
    world.write(12, 7, VAULT_0, vault(0, 107)).seal(12);
    world
        .write(12, 7, VAULT_0, vault(0, 107))
        .write(12, 6, VAULT_0, vault(0, 1));
    assert_eq!(world.quoted(), Some((1, 107, 200)));
    let late = world.ledger.account(write(12, 8, VAULT_0, vault(0, 108)));
    assert_eq!(
        late,
        Err(Divergence::LateWrite {
            slot: 12,
            pubkey: key(VAULT_0)
        })
    );
}

#[test]
fn a_repeated_status_changes_nothing() {
    let mut world = World::with_pool();
    world.write(12, 1, VAULT_0, vault(0, 120)).seal(12);
    let again = world.ledger.slot(&status(12, 11, SlotStatus::Processed));
    assert_eq!(again, Ok(None));
    let confirmed = world.ledger.slot(&status(12, 11, SlotStatus::Confirmed));
    assert_eq!(confirmed, Ok(None));
}

#[test]
fn a_dead_slot_that_was_not_visible_leaves_no_trace() {
    let mut world = World::with_pool();
    world.write(12, 1, VAULT_0, vault(0, 666));
    assert_eq!(
        world.ledger.slot(&status(12, 11, SlotStatus::Dead)),
        Ok(None)
    );
    world.seal_on(13, 11);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
}

#[test]
fn a_dead_slot_that_was_visible_is_told() {
    let mut world = World::with_pool();
    world.seal(12);
    let dead = world.ledger.slot(&status(12, 11, SlotStatus::Dead));
    assert_eq!(dead, Err(Divergence::DeadSlot { slot: 12 }));
}

#[test]
fn a_branch_that_leaves_the_visible_one_is_told_and_one_that_loses_is_ignored() {
    let mut world = World::with_pool();
    world
        .write(12, 1, VAULT_0, vault(0, 120))
        .write(13, 2, VAULT_0, vault(0, 666));
    world.seal_on(14, 11);
    assert_eq!(
        world.quoted(),
        Some((1, 100, 200)),
        "slots 12 and 13 are on no visible branch"
    );
    let other = world.ledger.slot(&status(12, 11, SlotStatus::Processed));
    assert_eq!(other, Ok(None), "an older slot of another branch");
    let fork = world.ledger.slot(&status(15, 12, SlotStatus::Processed));
    assert_eq!(
        fork,
        Err(Divergence::Fork {
            slot: 15,
            parent: 12,
            head: 14
        })
    );
}

#[test]
fn ancestors_whose_status_was_not_told_are_sealed_with_their_descendant() {
    let mut world = World::with_pool();
    world
        .write(12, 1, VAULT_0, vault(0, 120))
        .write(13, 2, VAULT_1, vault(1, 130));
    world
        .ledger
        .slot(&status(12, 11, SlotStatus::CreatedBank))
        .expect("in order");
    world.seal(13);
    assert_eq!(world.quoted(), Some((1, 120, 130)));
}

#[test]
fn waiting_writes_without_a_known_relation_are_told() {
    let mut world = World::with_pool();
    world.write(12, 1, VAULT_0, vault(0, 120));
    let orphan = SlotUpdate {
        parent: None,
        ..status(13, 0, SlotStatus::Processed)
    };
    assert_eq!(
        world.ledger.slot(&orphan),
        Err(Divergence::UnknownParent { slot: 13 })
    );
}

#[test]
fn a_closed_vault_takes_the_pool_away_and_a_new_one_brings_it_back() {
    let mut world = World::with_pool();
    world.write(12, 1, VAULT_0, closed()).seal(12);
    assert_eq!(world.quoted(), None);
    let reasons: Vec<_> = world
        .ledger
        .incomplete()
        .map(|(_, reason)| reason.clone())
        .collect();
    assert_eq!(
        reasons,
        [Incomplete::Absent {
            what: "vault",
            key: key(VAULT_0)
        }]
    );
    world.write(13, 2, VAULT_0, vault(0, 5)).seal(13);
    assert_eq!(world.quoted(), Some((1, 5, 200)));
}

#[test]
fn a_closed_pool_disappears() {
    let mut world = World::with_pool();
    world.write(12, 1, POOL, closed()).seal(12);
    assert_eq!(world.quoted(), None);
    assert_eq!(
        world.ledger.incomplete().count(),
        0,
        "it does not exist, so it lacks nothing"
    );
}

#[test]
fn a_vault_of_another_mint_or_program_does_not_complete_a_pool() {
    let mut world = World::with_pool();
    let mut foreign = vault(0, 100);
    foreign.owner = ids::TOKEN_2022;
    world.write(12, 1, VAULT_0, foreign).seal(12);
    assert_eq!(world.quoted(), None);
    world.write(13, 2, VAULT_0, vault(1, 100)).seal(13);
    assert_eq!(world.quoted(), None);
}

#[test]
fn a_new_pool_appears_only_when_its_mints_were_read() {
    let mut world = World::default();
    world.seal(10);
    world
        .write(11, 1, POOL, pool(1))
        .write(11, 2, CONFIG, config())
        .write(11, 3, VAULT_0, vault(0, 100))
        .write(11, 4, VAULT_1, vault(1, 200))
        .seal(11);
    assert_eq!(world.quoted(), None);
    let wanted: Vec<_> = world.ledger.wanted().iter().copied().collect();
    assert_eq!(wanted, [key(MINT_0), key(MINT_1)]);
    assert_eq!(world.ledger.known().len(), 6);
    world
        .snapshot(13, &[(MINT_0, Some(mint(0))), (MINT_1, Some(mint(1)))])
        .seal(12);
    assert_eq!(world.quoted(), None, "the snapshot is of slot 13");
    assert!(!world.ledger.joined());
    world.seal(13);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    assert!(world.ledger.joined() && world.ledger.wanted().is_empty());
}

#[test]
fn a_mint_that_does_not_exist_is_not_asked_for_again() {
    let mut world = World::with_pool();
    world.write(12, 1, POOL, pool(1));
    let mut other = pool_state(3);
    other.mints.token_0 = key(77);
    world
        .write(12, 2, 50, raw(ids::PROGRAM_ID, other.encode()))
        .seal(12);
    assert_eq!(world.ledger.wanted().len(), 1);
    world.snapshot(12, &[(77, None)]).seal(13);
    assert!(world.ledger.wanted().is_empty());
    assert_eq!(world.ledger.incomplete().count(), 1);
}

#[test]
fn a_mint_with_an_unsupported_extension_is_kept_with_that_reason() {
    const TRANSFER_HOOK: u16 = 14;
    let mut world = World::with_pool();
    let mut data = mint(1).data.to_vec();
    data.resize(cpmm::TOKEN_ACCOUNT_LEN, 0);
    data.push(1);
    data.extend(TRANSFER_HOOK.to_le_bytes());
    data.extend(64u16.to_le_bytes());
    data.extend([0; 64]);
    world
        .write(12, 1, MINT_1, raw(ids::TOKEN_2022, data))
        .seal(12);
    let pool = &world.visible[&key(POOL)];
    assert_eq!(
        pool.mints.token_1.unsupported_extension,
        Some(TRANSFER_HOOK)
    );
}

#[test]
fn a_snapshot_replaces_older_writes_and_loses_to_those_of_its_own_slot() {
    let mut world = World::with_pool();
    world
        .write(12, 1, VAULT_0, vault(0, 120))
        .write(13, 2, VAULT_1, vault(1, 130));
    // Read at slot 13, before the write of slot 13.
    world.snapshot(
        13,
        &[
            (VAULT_0, Some(vault(0, 121))),
            (VAULT_1, Some(vault(1, 999))),
        ],
    );
    world.seal(12).seal(13);
    assert_eq!(world.quoted(), Some((1, 121, 130)));
}

#[test]
fn an_old_snapshot_does_not_bring_back_a_closed_account() {
    let mut world = World::with_pool();
    world.write(12, 1, POOL, closed()).seal(12);
    world.snapshot(11, &[(POOL, Some(pool(9)))]).seal(13);
    assert_eq!(world.quoted(), None);
}

proptest! {
    /// A chain of slots with writes to one vault, joined with a snapshot taken at any slot and
    /// delivered at any later time, always shows the chain's balance at the last sealed slot.
    #[test]
    fn however_a_snapshot_is_joined_the_balance_is_the_chains(
        writes in proptest::collection::vec((12u64..30, any::<u64>()), 0..40),
        context_slot in 12u64..30,
        delivered_at in 12u64..30,
        within_slot in any::<bool>(),
    ) {
        let mut writes = writes;
        writes.sort_by_key(|(slot, _)| *slot);
        let at = |slot: u64| writes.iter().rev().find(|w| w.0 <= slot).map_or(100, |w| w.1);
        // The node may answer from the middle of the slot it names.
        let answer = at(if within_slot { context_slot - 1 } else { context_slot });
        let mut world = World::with_pool();
        for slot in 12..30 {
            for (version, (_, amount)) in writes.iter().enumerate().filter(|(_, w)| w.0 == slot) {
                world.write(slot, version as u64, VAULT_0, vault(0, *amount));
            }
            if slot == delivered_at {
                world.snapshot(context_slot, &[(VAULT_0, Some(vault(0, answer)))]);
            }
            world.seal(slot);
            prop_assert_eq!(world.quoted(), Some((1, at(slot), 200)));
        }
        prop_assert!(world.ledger.joined());
    }
}
