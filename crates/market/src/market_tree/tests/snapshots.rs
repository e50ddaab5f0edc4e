//! Account snapshots joined to the stream.

use proptest::prelude::*;

use super::*;

#[test]
fn accounts_that_no_pool_has_are_not_kept() {
    let mut world = World::with_pool();
    world
        .write(11, 1, 200, closed())
        .write(11, 2, 201, vault(1, 5))
        .write(11, 3, 202, mint(0))
        .seal(11);
    world.confirm(11).seal(12).confirm(12);
    for byte in [200, 201, 202] {
        assert_eq!(world.tree.accounts.get(12, &key(byte)), None);
    }
    assert!(world.tree.accounts.get(12, &key(MINT_1)).is_some());
}

/// The address of one of many accounts that belong to no pool.
fn stranger(number: u64) -> Pubkey {
    let mut bytes = [250; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Pubkey::from(bytes)
}

#[test]
fn token_accounts_of_the_authority_that_no_pool_names_leave_nothing_behind() {
    let mut world = World::with_pool();
    let kept = world.tree.accounts.confirmed_len();
    for round in 0..10 {
        let slot = 11 + 2 * round;
        for (number, version) in (round * 100..).zip(0..100) {
            let created = written(slot, version, stranger(number), vault(0, 1));
            world.tree.account(&created).expect("in order");
            // Some are closed in the slot in which they were created, some later.
            let end = slot + number % 2;
            let closed = written(end, 100 + version, stranger(number), closed());
            world.tree.account(&closed).expect("in order");
        }
        world
            .seal(slot)
            .seal(slot + 1)
            .confirm(slot)
            .confirm(slot + 1);
    }
    world.seal(31).confirm(31);
    assert_eq!(world.tree.accounts.confirmed_len(), kept);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
}

#[test]
fn what_the_first_snapshots_hold_beside_the_pools_is_not_kept() {
    let mut world = World::default();
    world.write(10, 1, 200, vault(0, 1)).first_snapshot(
        10,
        &[(201, Some(vault(1, 1))), (202, Some(mint_with_hook()))],
    );
    world.tree.first_snapshots_complete();
    world.seal(10).seal(11).confirm(11);
    assert_eq!(world.tree.accounts.confirmed_len(), 0);
}

/// The writes that make a pool, without those of `left_out`.
fn create_pool(world: &mut World, slot: u64, left_out: &[u8]) {
    let accounts = [
        (CONFIG, config()),
        (VAULT_0, vault(0, 100)),
        (VAULT_1, vault(1, 200)),
        (POOL, pool(1)),
    ];
    for (version, (byte, account)) in (50..).zip(accounts) {
        if !left_out.contains(&byte) {
            world.write(slot, version, byte, account);
        }
    }
}

/// Slot 10 is the confirmed head of an exchange without pools.
fn without_pools() -> World {
    let mut world = World::default();
    world.first_snapshot(10, &[]);
    world.tree.first_snapshots_complete();
    world.seal(10);
    world
}

#[test]
fn a_vault_that_is_older_than_its_pool_is_found_in_the_stream() {
    for slots_before in 0..3 {
        let mut world = without_pools();
        world.write(11, 1, VAULT_0, vault(0, 90));
        for slot in 11..11 + slots_before {
            world.seal(slot);
        }
        let slot = 11 + slots_before;
        create_pool(&mut world, slot, &[VAULT_0]);
        world.seal(slot);
        let mints = [key(MINT_0), key(MINT_1)];
        assert_eq!(world.tree.take_missing(), mints, "{slots_before}");
        world.snapshot(slot, &[(MINT_0, Some(mint(0))), (MINT_1, Some(mint(1)))]);
        assert_eq!(world.quoted(), Some((1, 90, 200)), "{slots_before}");
        world
            .seal(slot + 1)
            .confirm(slot + 1)
            .seal(slot + 2)
            .confirm(slot + 2);
        assert_eq!(world.confirmed(), Some((1, 90, 200)), "{slots_before}");
    }
}

#[test]
fn a_vault_that_was_forgotten_before_a_pool_named_it_is_read() {
    for moved_before_the_answer in [false, true] {
        let mut world = without_pools();
        world
            .write(11, 1, VAULT_0, vault(0, 90))
            .seal(11)
            .confirm(11);
        for slot in 12..15 {
            world.seal(slot).confirm(slot);
        }
        create_pool(&mut world, 15, &[VAULT_0]);
        world.seal(15);
        let missing = [key(VAULT_0), key(MINT_0), key(MINT_1)];
        assert_eq!(world.tree.take_missing(), missing);
        assert_eq!(world.quoted(), None);
        let mut expected = Some((1, 90, 200));
        if moved_before_the_answer {
            expected = Some((1, 70, 200));
            world.write(16, 1, VAULT_0, vault(0, 70)).seal(16);
            world.confirm(16).seal(17).confirm(17);
        }
        world.snapshot(
            15,
            &[
                (VAULT_0, Some(vault(0, 90))),
                (MINT_0, Some(mint(0))),
                (MINT_1, Some(mint(1))),
            ],
        );
        assert_eq!(world.quoted(), expected);
        for slot in 16..20 {
            world.seal(slot).confirm(slot);
        }
        assert_eq!(world.confirmed(), expected);
    }
}

#[test]
fn a_vault_that_was_closed_and_opened_again_is_the_one_that_was_opened() {
    let mut world = without_pools();
    world
        .write(11, 1, VAULT_0, vault(0, 90))
        .seal(11)
        .confirm(11);
    world.write(12, 1, VAULT_0, closed()).seal(12).confirm(12);
    create_pool(&mut world, 13, &[VAULT_0]);
    world.seal(13).confirm(13);
    world.snapshot(
        13,
        &[
            (VAULT_0, None),
            (MINT_0, Some(mint(0))),
            (MINT_1, Some(mint(1))),
        ],
    );
    assert_eq!(world.quoted(), None);
    world.write(14, 1, VAULT_0, vault(0, 95)).seal(14);
    assert_eq!(world.quoted(), Some((1, 95, 200)));
    world.confirm(14).seal(15).confirm(15);
    assert_eq!(world.confirmed(), Some((1, 95, 200)));
}

#[test]
fn a_pool_is_quoted_in_the_slot_that_made_it_and_its_mints() {
    let mut world = without_pools();
    world.write(11, 1, MINT_1, mint(1));
    create_pool(&mut world, 11, &[]);
    assert_eq!(world.quoted(), None, "slot 11 is not sealed");
    world.seal(11);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    assert!(world.incomplete().is_empty());
    // What there is of the other one, which the stream does not show, is read once.
    assert_eq!(world.tree.take_missing(), [key(MINT_0)]);
    assert_eq!(world.supply_0(), None);
    world.seal(12).snapshot(12, &[(MINT_0, Some(mint(0)))]);
    assert_eq!(world.supply_0(), Some(1_000));
    world.confirm(12).seal(13);
    assert_eq!(world.supply_0(), Some(1_000));
    assert!(world.tree.take_missing().is_empty());
}

#[test]
fn a_pool_of_an_older_mint_is_quoted_in_its_own_slot_once_that_is_read() {
    let mut world = without_pools();
    create_pool(&mut world, 11, &[]);
    world.seal(11);
    assert_eq!(world.quoted(), None);
    assert_eq!(world.tree.take_missing(), [key(MINT_0), key(MINT_1)]);
    assert!(world.tree.take_missing().is_empty(), "handed out once");
    // A fork that lacks the pool has the mint all the same.
    world.seal_on(12, 10).seal_on(13, 11);
    world.snapshot(14, &[(MINT_0, Some(mint(0))), (MINT_1, Some(mint(1)))]);
    assert_eq!(world.quoted(), None, "a write of slot 14 may be on its way");
    world.seal(14);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    for slot in [11, 13] {
        world.confirm(slot);
        assert_eq!(world.confirmed(), Some((1, 100, 200)), "slot {slot}");
    }
}

#[test]
fn a_pool_of_a_mint_that_was_shown_long_before_is_quoted_in_its_own_slot() {
    let mut world = without_pools();
    let kept = world.tree.accounts.confirmed_len();
    world.write(11, 1, MINT_1, mint(1)).seal(11).confirm(11);
    for slot in 12..40 {
        world.seal(slot).confirm(slot);
    }
    assert_eq!(world.tree.accounts.confirmed_len(), kept, "no pool has it");
    // A lost stream, all of whose slots are replayed, loses nothing of it.
    world.tree.rewind();
    world.seal(39);
    create_pool(&mut world, 40, &[]);
    world.seal(40);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    assert_eq!(world.tree.take_missing(), [key(MINT_0)]);
    world.confirm(40).write(41, 1, VAULT_0, vault(0, 120));
    world.seal(41).confirm(41);
    assert_eq!(world.confirmed(), Some((1, 120, 200)));
}

#[test]
fn a_mint_that_was_shown_and_closed_before_its_pool_came_is_read() {
    let mut world = without_pools();
    world.write(11, 1, MINT_1, mint(1)).seal(11).confirm(11);
    world.seal(12).confirm(12);
    world.write(13, 1, MINT_1, closed()).seal(13).confirm(13);
    world.seal(14).confirm(14);
    create_pool(&mut world, 15, &[]);
    world.seal(15);
    assert_eq!(world.quoted(), None);
    assert_eq!(world.tree.take_missing(), [key(MINT_0), key(MINT_1)]);
}

#[test]
fn a_mint_of_spl_token_that_a_read_of_an_older_slot_did_not_find_is_not_waited_for() {
    let mut world = World::default();
    // Slot 9, of which the mints were read, lacks the mint and the pool; slot 10, of which pools were read, has both.
    world
        .first_snapshot(
            10,
            &[
                (POOL, Some(pool(1))),
                (CONFIG, Some(config())),
                (VAULT_0, Some(vault(0, 100))),
                (VAULT_1, Some(vault(1, 200))),
            ],
        )
        .first_snapshot(9, &[(MINT_0, None), (MINT_1, Some(mint(1)))]);
    world.tree.first_snapshots_complete();
    world.seal(9).seal(10);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    assert_eq!(world.supply_0(), None);
    assert_eq!(world.tree.take_missing(), [key(MINT_0)], "for its supply");
}

#[test]
fn a_mint_that_was_written_after_the_pool_is_known_from_that_slot_on() {
    let mut world = without_pools();
    create_pool(&mut world, 11, &[]);
    world
        .seal(11)
        .write(12, 1, MINT_1, mint_with_hook())
        .seal(12);
    assert_eq!(world.quoted(), Some((1, 100, 200)), "slot 12 wrote it");
    world
        .seal(13)
        .snapshot(13, &[(MINT_1, Some(mint_with_hook()))]);
    world.confirm(11);
    assert_eq!(
        world.confirmed(),
        None,
        "what it was in slot 11 is not known"
    );
    world.confirm(12);
    assert_eq!(world.confirmed(), Some((1, 100, 200)));
}

#[test]
fn what_was_read_of_a_mint_of_spl_token_is_not_taken_for_older_than_it_is() {
    let mut world = without_pools();
    world.write(11, 1, MINT_1, mint(1));
    create_pool(&mut world, 11, &[]);
    world
        .seal(11)
        .seal(12)
        .snapshot(12, &[(MINT_0, Some(mint(0)))]);
    assert_eq!(world.supply_0(), Some(1_000));
    world.dead(12);
    assert_eq!(
        (world.quoted(), world.supply_0()),
        (Some((1, 100, 200)), None)
    );
}

#[test]
fn accounts_in_flight_on_a_lost_connection_are_read_again() {
    let mut world = World::with_pool();
    let mut other = pool_state(3);
    other.mints.token_0 = key(77);
    world
        .write(11, 1, 50, raw(ids::PROGRAM_ID, other.encode()))
        .seal(11)
        .confirm(11);
    assert_eq!(world.tree.take_missing(), [key(77)]);
    world.tree.rewind();
    world.seal(11);
    assert_eq!(world.tree.take_missing(), [key(77)]);
    world.snapshot(11, &[(77, None)]);
    world.write(12, 2, POOL, pool(2)).seal(12);
    assert!(world.tree.take_missing().is_empty(), "it does not exist");
    for slot in 13..11 + FIRST_WAIT_SLOTS {
        world.seal(slot);
    }
    assert!(world.tree.take_missing().is_empty());
    world.seal(11 + FIRST_WAIT_SLOTS);
    assert_eq!(world.tree.take_missing(), [key(77)], "it may exist by now");
}

#[test]
fn a_snapshot_does_not_replace_what_the_stream_wrote_after_it() {
    let mut world = World::with_pool();
    world.write(11, 1, VAULT_0, vault(0, 120)).seal(11);
    world
        .snapshot(10, &[(VAULT_0, Some(vault(0, 100)))])
        .seal(12);
    assert_eq!(world.quoted(), Some((1, 120, 200)));
}

proptest! {
    /// A chain of slots with writes to the vaults, which were read at two slots of it, begins at the
    /// later one and always shows the chain's balances at the last sealed slot.
    #[test]
    fn whenever_the_first_snapshots_were_read_the_balances_are_the_chains(
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
                    .first_snapshot(read_at.0, &[
                        (POOL, Some(pool(1))),
                        (CONFIG, Some(config())),
                        (VAULT_0, Some(vault(0, at(read_at.0, false)))),
                    ])
                    .first_snapshot(read_at.1, &[
                        (VAULT_1, Some(vault(1, at(read_at.1, true)))),
                        (MINT_0, Some(mint(0))),
                        (MINT_1, Some(mint(1))),
                    ]);
                world.tree.first_snapshots_complete();
            }
            world.seal(slot);
            let head = read_at.0.max(read_at.1);
            let begun = slot >= delivered_at && slot >= head;
            let expected = begun.then(|| (1, at(slot, false), at(slot, true)));
            prop_assert_eq!(world.quoted(), expected);
        }
        prop_assert!(world.tree.processed_head().is_some());
    }
}
