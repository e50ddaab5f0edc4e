//! Slots: order and content of what subscribers get at each commitment.

mod replay;

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use yellowstone_grpc_proto::{
    geyser::{SubscribeUpdateBlockMeta, SubscribeUpdateEntry, SubscribeUpdateTransactionInfo},
    solana::storage::confirmed_block::BlockHeight,
};

use super::*;
use crate::message::{AccountUpdate, TransactionUpdate};

const LIMITS: RingLimits = RingLimits {
    replay_slots: 40,
    replay_bytes: usize::MAX,
    unfinalized_slots: 100,
};

fn event(update: Update) -> Event {
    Event {
        update,
        created_at: Timestamp::default(),
    }
}

fn account(slot: Slot, key: u8, write_version: u64) -> Event {
    event(Update::Account(Arc::new(AccountUpdate {
        slot,
        address: [key; 32],
        owner: [0; 32],
        lamports: 1,
        executable: false,
        rent_epoch: 0,
        data: Bytes::from_static(&[0; 100]),
        write_version,
        txn_signature: None,
        is_startup: false,
    })))
}

fn transaction(slot: Slot, index: u64) -> Event {
    event(Update::Transaction(Arc::new(TransactionUpdate {
        slot,
        signature: [1; 64],
        is_vote: false,
        failed: false,
        keys: Vec::new(),
        token_owners: Vec::new(),
        info: SubscribeUpdateTransactionInfo {
            index,
            ..SubscribeUpdateTransactionInfo::default()
        },
        wire_bytes: 10,
    })))
}

fn hash(slot: Slot) -> Vec<u8> {
    slot.to_le_bytes().repeat(4)
}

/// The only entry of a block, whose hash is the blockhash.
fn entry(slot: Slot) -> Event {
    event(Update::Entry(Arc::new(SubscribeUpdateEntry {
        slot,
        hash: hash(slot),
        ..SubscribeUpdateEntry::default()
    })))
}

fn meta(slot: Slot, transactions: u64) -> Event {
    event(Update::BlockMeta(Arc::new(SubscribeUpdateBlockMeta {
        slot,
        blockhash: bs58::encode(hash(slot)).into_string(),
        block_height: Some(BlockHeight { block_height: slot }),
        parent_slot: slot - 1,
        executed_transaction_count: transactions,
        ..SubscribeUpdateBlockMeta::default()
    })))
}

fn status(slot: Slot, status: SlotStatus) -> Event {
    event(Update::Slot(SlotUpdate {
        slot,
        parent: slot.checked_sub(1),
        status,
        dead_error: None,
    }))
}

fn processed(slot: Slot) -> Event {
    status(slot, SlotStatus::SlotProcessed)
}

fn confirmed(slot: Slot) -> Event {
    status(slot, SlotStatus::SlotConfirmed)
}

fn finalized(slot: Slot) -> Event {
    status(slot, SlotStatus::SlotFinalized)
}

/// A short name per event: `a3/7` is write version 7 in slot 3, `t3` a transaction, `e3` an entry, `b3` the block, `m3`
/// its meta, `P3 C3 F3` the statuses.
fn name(event: &Event) -> String {
    let slot = event.update.slot();
    match &event.update {
        Update::Account(account) => format!("a{slot}/{}", account.write_version),
        Update::Transaction(_) => format!("t{slot}"),
        Update::Entry(_) => format!("e{slot}"),
        Update::Block(_) => format!("b{slot}"),
        Update::BlockMeta(_) => format!("m{slot}"),
        Update::Slot(update) => match update.status {
            SlotStatus::SlotProcessed => format!("P{slot}"),
            SlotStatus::SlotConfirmed => format!("C{slot}"),
            SlotStatus::SlotFinalized => format!("F{slot}"),
            SlotStatus::SlotDead => format!("D{slot}"),
            _ => format!("?{slot}"),
        },
    }
}

fn names(events: &[Event]) -> String {
    events.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Applies messages and returns what the three streams saw.
fn streams(ring: &mut SlotRing, messages: impl IntoIterator<Item = Event>) -> [Vec<Event>; 3] {
    let mut seen: [Vec<Event>; 3] = Default::default();
    for message in messages {
        let outbox = ring.apply(message);
        for (seen, batch) in seen.iter_mut().zip(outbox.0) {
            seen.extend(batch);
        }
    }
    seen
}

fn from_genesis() -> SlotRing {
    let mut ring = SlotRing::new(LIMITS);
    ring.apply(account(0, 9, 0));
    ring
}

/// A slot as the validator reports it when all goes well.
fn good_slot(slot: Slot) -> Vec<Event> {
    let version = slot * 10;
    vec![
        status(slot, SlotStatus::SlotCreatedBank),
        account(slot, 1, version),
        account(slot, 2, version + 1),
        account(slot, 1, version + 2),
        transaction(slot, 0),
        entry(slot),
        meta(slot, 1),
        processed(slot),
    ]
}

#[test]
fn each_stream_gets_content_then_meta_then_its_status() {
    let mut ring = from_genesis();
    let messages = good_slot(1)
        .into_iter()
        .skip(1)
        .chain([confirmed(1), finalized(1)]);
    let [at_processed, at_confirmed, at_finalized] = streams(&mut ring, messages);
    assert_eq!(
        names(&at_processed),
        "a1/10 a1/11 a1/12 t1 e1 b1 m1 P1 P0 C0 C1 F0 F1"
    );
    assert_eq!(
        names(&at_confirmed),
        "P1 P0 a0/0 C0 a1/11 a1/12 t1 e1 b1 m1 C1 F0 F1"
    );
    assert_eq!(
        names(&at_finalized),
        "P1 P0 C0 C1 a0/0 F0 a1/11 a1/12 t1 e1 b1 m1 F1"
    );
}

#[test]
fn a_status_waits_for_the_transactions_that_the_block_meta_announces() {
    let mut ring = from_genesis();
    let early = [
        entry(1),
        meta(1, 2),
        processed(1),
        confirmed(1),
        transaction(1, 1),
    ];
    let [at_processed, at_confirmed, _] = streams(&mut ring, early);
    assert_eq!(names(&at_processed), "e1 t1");
    assert_eq!(names(&at_confirmed), "");
    let [at_processed, at_confirmed, _] = streams(&mut ring, [transaction(1, 0)]);
    assert_eq!(names(&at_processed), "t1 P0 C0 b1 m1 P1 C1");
    assert_eq!(names(&at_confirmed), "P0 a0/0 C0 P1 t1 t1 e1 b1 m1 C1");
}

#[test]
fn lower_levels_and_ancestors_are_reported_first() {
    let mut ring = from_genesis();
    let blocks = (1..=3).flat_map(|slot| [entry(slot), meta(slot, 0)]);
    let [_, _, at_finalized] = streams(&mut ring, blocks.chain([finalized(3)]));
    assert_eq!(
        names(&at_finalized),
        "P0 C0 a0/0 F0 P1 C1 e1 b1 m1 F1 P2 C2 e2 b2 m2 F2 P3 C3 e3 b3 m3 F3"
    );
    assert_eq!(ring.blocks().slot(Commitment::Finalized), Ok(3));
}

#[test]
fn repeated_statuses_are_reported_once_and_never_withdrawn() {
    let mut ring = from_genesis();
    streams(&mut ring, good_slot(1));
    streams(&mut ring, [finalized(1)]);
    let again = [processed(1), confirmed(1), finalized(1)];
    let [at_processed, at_confirmed, at_finalized] = streams(&mut ring, again);
    assert!(at_processed.is_empty() && at_confirmed.is_empty() && at_finalized.is_empty());
}

#[test]
fn content_that_comes_late_still_comes() {
    let mut ring = from_genesis();
    streams(&mut ring, good_slot(1));
    streams(&mut ring, [confirmed(1)]);
    let [at_processed, at_confirmed, at_finalized] = streams(&mut ring, [account(1, 5, 99)]);
    assert_eq!(names(&at_processed), "a1/99");
    assert_eq!(names(&at_confirmed), "a1/99");
    assert_eq!(names(&at_finalized), "");
    let [_, _, at_finalized] = streams(&mut ring, [finalized(1)]);
    assert!(names(&at_finalized).contains("a1/99 t1 e1 b1 m1 F1"));
}

#[test]
fn a_slot_without_block_meta_delays_others_for_a_short_time_only() {
    let mut ring = from_genesis();
    let [at_processed, ..] = streams(&mut ring, [processed(1), confirmed(1)]);
    assert_eq!(names(&at_processed), "");
    // A sealed child proves that nothing more comes for its parent.
    let [at_processed, ..] = streams(&mut ring, [entry(2), meta(2, 0)]);
    assert_eq!(names(&at_processed), "e2 P0 C0 P1 C1");
    // Without any block metas, statuses still move on.
    let [at_processed, ..] = streams(&mut ring, (3..=40).map(processed));
    assert_eq!(names(&at_processed), "P3 P4 P5 P6 P7");
}

#[test]
fn a_slot_that_lacks_content_is_not_sealed_until_it_has_come() {
    let mut ring = from_genesis();
    streams(&mut ring, [entry(1), meta(1, 1), processed(1)]);
    // The sealed child releases the statuses, but the block meta would say that nothing is missing.
    let [at_processed, ..] = streams(&mut ring, good_slot(2));
    assert!(names(&at_processed).ends_with("e2 P1 b2 m2 P2"));
    assert_eq!(ring.first_available(), Some(2));
    let [at_processed, at_confirmed, _] = streams(&mut ring, [transaction(1, 0)]);
    assert_eq!(names(&at_processed), "t1 b1 m1");
    assert_eq!(names(&at_confirmed), "");
    assert_eq!(ring.first_available(), Some(1));
}

#[test]
fn lifecycle_statuses_go_to_all_streams_at_once() {
    let mut ring = from_genesis();
    let dead = [
        status(1, SlotStatus::SlotCreatedBank),
        status(1, SlotStatus::SlotDead),
    ];
    for stream in streams(&mut ring, dead) {
        assert_eq!(names(&stream), "?1 D1");
    }
}

#[test]
fn a_plugin_loaded_late_does_not_seal_or_replay_its_first_slot() {
    let mut ring = SlotRing::new(LIMITS);
    let [at_processed, at_confirmed, _] =
        streams(&mut ring, good_slot(7).into_iter().chain([confirmed(7)]));
    assert_eq!(names(&at_processed), "?7 a7/70 a7/71 a7/72 t7 e7 P7 C7");
    assert_eq!(names(&at_confirmed), "?7 P7 C7");
    assert_eq!(
        ring.replay(7, Commitment::Processed),
        Err(ReplayError::NotReady)
    );
    streams(&mut ring, good_slot(8));
    assert_eq!(ring.first_available(), Some(8));
    let too_old = ring.replay(7, Commitment::Processed).unwrap_err();
    assert_eq!(
        too_old.to_string(),
        "broadcast from 7 is not available, last available: 8"
    );
}

#[test]
fn slots_that_lost_messages_are_neither_sealed_nor_replayed() {
    let mut ring = from_genesis();
    streams(&mut ring, good_slot(1).into_iter().chain(good_slot(2)));
    ring.lose_through(3);
    streams(&mut ring, good_slot(3).into_iter().chain(good_slot(4)));
    let [_, at_confirmed, _] = streams(&mut ring, [confirmed(4)]);
    assert_eq!(
        names(&at_confirmed),
        "P0 C0 C1 C2 C3 a4/41 a4/42 t4 e4 b4 m4 C4"
    );
    assert_eq!(ring.first_available(), Some(4));
}

#[test]
fn a_slot_waits_for_the_entry_that_its_blockhash_names() {
    let mut ring = from_genesis();
    let tick = |index: u64, hash: Vec<u8>| {
        event(Update::Entry(Arc::new(SubscribeUpdateEntry {
            slot: 1,
            index,
            hash,
            ..SubscribeUpdateEntry::default()
        })))
    };
    let early = [meta(1, 0), processed(1), tick(0, vec![1; 32])];
    let [at_processed, ..] = streams(&mut ring, early);
    assert_eq!(names(&at_processed), "e1");
    // The last one is there, but not the one before it.
    let [at_processed, ..] = streams(&mut ring, [tick(2, hash(1))]);
    assert_eq!(names(&at_processed), "e1");
    let [at_processed, ..] = streams(&mut ring, [tick(1, vec![2; 32])]);
    assert_eq!(names(&at_processed), "e1 b1 m1 P1");
}

#[test]
fn a_block_holds_all_content_with_the_last_write_of_each_account() {
    let mut ring = from_genesis();
    let [at_processed, ..] = streams(&mut ring, good_slot(1));
    let block = at_processed.iter().find_map(|event| match &event.update {
        Update::Block(block) => Some(block),
        _ => None,
    });
    let block = block.unwrap();
    let versions = block.accounts.iter().map(|account| account.write_version);
    assert_eq!(versions.collect::<Vec<_>>(), [11, 12]);
    assert_eq!((block.transactions.len(), block.entries.len()), (1, 1));
    assert_eq!(block.meta.slot, 1);
}

#[test]
fn the_window_moves_and_memory_is_given_back() {
    let mut ring = from_genesis();
    for slot in 1..=400 {
        streams(&mut ring, good_slot(slot));
        streams(&mut ring, [finalized(slot)]);
    }
    assert_eq!(ring.slots.len(), LIMITS.replay_slots);
    assert_eq!(ring.first_available(), Some(361));
    let sum: usize = ring.slots.values().map(|buffered| buffered.bytes).sum();
    assert_eq!(ring.bytes, sum);
    assert!(ring.waiting.is_empty());
    // What is older than the window passes through.
    let [at_processed, at_confirmed, at_finalized] = streams(&mut ring, [account(5, 1, 1)]);
    for stream in [at_processed, at_confirmed, at_finalized] {
        assert_eq!(names(&stream), "a5/1");
    }
}

#[test]
fn large_slots_shorten_the_window_but_unfinalized_ones_stay() {
    let mut ring = SlotRing::new(RingLimits {
        replay_bytes: 20_000,
        ..LIMITS
    });
    ring.apply(account(0, 9, 0));
    for slot in 1..=40 {
        streams(&mut ring, good_slot(slot));
    }
    assert_eq!(ring.first_available(), Some(1));
    streams(&mut ring, [finalized(35)]);
    let first = ring.first_available().unwrap();
    assert!(first > 0 && ring.bytes <= 20_000 || first == 36, "{first}");
}

#[test]
fn a_chain_that_never_finalizes_is_bounded() {
    let mut ring = from_genesis();
    for slot in 1..=1_000 {
        streams(&mut ring, good_slot(slot));
    }
    assert_eq!(
        ring.slots.len(),
        LIMITS.replay_slots + LIMITS.unfinalized_slots
    );
}

/// Shuffles by a fixed sequence, so that a failure can be repeated.
fn shuffle(messages: &mut [Event], seed: &mut u64) {
    for end in (1..messages.len()).rev() {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        messages.swap(end, (*seed >> 33) as usize % (end + 1));
    }
}

fn position(events: &[Event], wanted: &str) -> Option<usize> {
    events.iter().position(|event| name(event) == wanted)
}

/// Banks are created parent first. Whatever the order of all that follows: every stream ends with
/// everything, each status once, and lower levels and parents before.
#[test]
fn any_order_of_reports_gives_an_ordered_stream() {
    const LAST: Slot = 6;
    let mut seed = 1;
    for round in 0..2_000 {
        let mut ring = from_genesis();
        let created = (1..=LAST).map(|slot| status(slot, SlotStatus::SlotCreatedBank));
        let mut created = streams(&mut ring, created);
        let mut messages: Vec<Event> = (1..=LAST)
            .flat_map(|slot| {
                let reports = good_slot(slot).into_iter().skip(1);
                reports.chain([confirmed(slot), finalized(slot)])
            })
            .collect();
        shuffle(&mut messages, &mut seed);
        for (seen, stream) in created.iter_mut().zip(streams(&mut ring, messages)) {
            seen.extend(stream);
        }
        for (level, stream) in created.iter().enumerate() {
            let emitted: Vec<String> = stream
                .iter()
                .map(name)
                .filter(|name| name.starts_with(['P', 'C', 'F']))
                .collect();
            let distinct: HashSet<&String> = emitted.iter().collect();
            assert_eq!(emitted.len(), distinct.len(), "round {round}: {emitted:?}");
            for slot in 1..=LAST {
                let at = |letter: char, slot: Slot| position(stream, &format!("{letter}{slot}"));
                let (p, c, f) = (at('P', slot), at('C', slot), at('F', slot));
                assert!(p.is_some() && p < c && c < f, "round {round}: {emitted:?}");
                assert!(
                    at('m', slot).is_some(),
                    "round {round} level {level}: no meta {slot}"
                );
                assert!(at('t', slot).is_some() && at('a', slot).is_none());
                let last_write = position(stream, &format!("a{slot}/{}", slot * 10 + 2));
                assert!(last_write.is_some(), "round {round}: write of {slot}");
                if slot > 1 && level > 0 {
                    assert!(at('F', slot - 1) < f, "round {round}: {emitted:?}");
                }
            }
        }
    }
}
