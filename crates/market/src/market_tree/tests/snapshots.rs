//! Account snapshots joined to the stream.

use proptest::prelude::*;

use super::*;

#[test]
fn accounts_that_no_pool_has_are_not_kept() {
    let mut world = World::with_pool();
    world
        .write(11, 1, 200, closed())
        .write(11, 2, 201, mint(1))
        .seal(11);
    world.confirm(11).seal(12).confirm(12);
    for byte in [200, 201] {
        assert_eq!(world.tree.accounts.get(12, &key(byte)), None);
    }
    assert!(world.tree.accounts.get(12, &key(MINT_1)).is_some());
}

#[test]
fn a_new_pool_appears_when_its_mints_were_read() {
    let mut world = World::default();
    world.first_snapshot(10, &[]);
    world.tree.first_snapshots_complete();
    world
        .seal(10)
        .write(11, 1, POOL, pool(1))
        .write(11, 2, CONFIG, config())
        .write(11, 3, VAULT_0, vault(0, 100))
        .write(11, 4, VAULT_1, vault(1, 200))
        .seal(11);
    assert_eq!(world.quoted(), None);
    assert_eq!(world.tree.take_missing(), [key(MINT_0), key(MINT_1)]);
    assert!(world.tree.take_missing().is_empty(), "handed out once");
    world.snapshot(13, &[(MINT_0, Some(mint(0))), (MINT_1, Some(mint(1)))]);
    world.seal(12);
    assert_eq!(world.quoted(), None, "the snapshot is of slot 13");
    world.seal(13);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
    world.seal(14);
    assert_eq!(world.quoted(), Some((1, 100, 200)));
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
