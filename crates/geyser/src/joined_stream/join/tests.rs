//! Joined slots: strands that are cut, late or replaced, against the slots that all of them have.

use solana_pubkey::Pubkey;
use solana_signature::Signature;

use super::*;
use crate::update::TransactionUpdate;

/// Strands of the tests. Strand n has transaction n of each slot, and one that all have.
const STRANDS: usize = 3;

/// A small generator, so that runs repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % end
    }
}

fn any_update(slot: u64) -> Update {
    Update {
        filters: Vec::new(),
        created_at: None,
        bank_id: None,
        body: Body::Slot(SlotUpdate {
            slot,
            parent: None,
            status: SlotStatus::Dead,
            dead_error: None,
        }),
    }
}

fn status(slot: u64, status: SlotStatus) -> Update {
    Update {
        body: Body::Slot(SlotUpdate {
            slot,
            parent: slot.checked_sub(1),
            status,
            dead_error: None,
        }),
        ..any_update(slot)
    }
}

fn transaction(slot: u64, number: u8) -> Update {
    let mut signature = [number; 64];
    signature[..8].copy_from_slice(&slot.to_le_bytes());
    let transaction = TransactionUpdate {
        slot,
        index: u64::from(number),
        signature: Signature::from(signature),
        is_vote: false,
        error: None,
        account_keys: Vec::new(),
        writable: Vec::new(),
        instructions: Vec::new(),
        inner_instructions: Vec::new(),
        log_messages: Vec::new(),
        logs_missing: false,
        fee: 0,
        compute_units: None,
        pre_balances: Vec::new(),
        post_balances: Vec::new(),
        pre_token_balances: Vec::new(),
        post_token_balances: Vec::new(),
    };
    Update {
        body: Body::Transaction(Box::new(transaction)),
        ..any_update(slot)
    }
}

/// A slot as a strand gives it out: `fork` is which block, on which of its parent.
fn slot(id: StrandId, number: u64, fork: u8, parent_fork: u8) -> Vec<Update> {
    let meta = BlockMeta {
        slot: number,
        parent_slot: number - 1,
        blockhash: format!("{number}/{fork}"),
        parent_blockhash: format!("{}/{parent_fork}", number - 1),
        block_time: None,
        block_height: None,
        executed_transaction_count: 0,
    };
    let meta = Update {
        body: Body::BlockMeta(meta),
        ..any_update(number)
    };
    vec![
        status(number, SlotStatus::CreatedBank),
        transaction(number, 100),
        transaction(number, u8::try_from(id).unwrap()),
        meta,
        status(number, SlotStatus::Processed),
    ]
}

fn give(join: &mut Join, id: StrandId, updates: Vec<Update>) {
    let updates = updates.into_iter().map(Assembled::Update).collect();
    join.add(id, updates).unwrap();
}

/// Strands that begin at these slots.
fn opened(from: [u64; STRANDS]) -> Join {
    let mut join = Join::default();
    join.wanted(Generation(1), &Request::default());
    for id in 0..STRANDS {
        join.opened(id, FIRST, None);
    }
    for (id, slot) in from.into_iter().enumerate() {
        show(&mut join, id, FIRST, slot);
    }
    join
}

const FIRST: Generation = Generation(1);

fn show(join: &mut Join, id: StrandId, filter: Generation, slot: u64) {
    let shown = Assembled::InForce { filter, slot };
    join.add(id, vec![shown]).unwrap();
}

/// What was given out, readable: blocks with the numbers of their transactions, statuses, filters.
fn text(join: &mut Join) -> String {
    let mut text = Vec::new();
    for each in join.take() {
        text.push(match each {
            Assembled::InForce { filter, slot } => format!("filter {filter} from {slot}"),
            Assembled::Late { slot, .. } => format!("late {slot}"),
            Assembled::Replaced { slot } => format!("replaced {slot}"),
            Assembled::Ahead { slot, .. } | Assembled::Void { slot } => format!("ahead {slot}"),
            Assembled::Update(update) => match update.body {
                Body::Transaction(it) => format!("t{}", it.index),
                Body::BlockMeta(meta) => meta.blockhash,
                Body::Slot(it) => match it.status {
                    SlotStatus::CreatedBank | SlotStatus::Processed => continue,
                    other => format!("{other:?} {}", it.slot),
                },
                Body::Account(account) => format!("a{}", account.write_version),
            },
        });
    }
    text.join(" ")
}

#[test]
fn a_slot_is_given_out_once_every_strand_has_it_and_what_several_have_once() {
    let mut join = opened([10, 11, 10]);
    assert_eq!(text(&mut join), "filter 1 from 11");
    for id in [2, 0] {
        give(&mut join, id, slot(id, 10, 0, 0));
        give(&mut join, id, slot(id, 11, 0, 0));
        give(&mut join, id, vec![status(11, SlotStatus::Confirmed)]);
    }
    assert_eq!(text(&mut join), "");
    give(&mut join, 1, slot(1, 11, 0, 0));
    assert_eq!(text(&mut join), "t100 t0 t1 t2 11/0 Confirmed 11");
    give(&mut join, 1, vec![status(11, SlotStatus::Confirmed)]);
    assert_eq!(text(&mut join), "");
}

#[test]
fn a_block_that_one_strand_withdraws_is_withdrawn_once_with_what_builds_on_it() {
    let mut join = opened([10; STRANDS]);
    for id in 0..STRANDS {
        give(&mut join, id, slot(id, 10, 0, 0));
        give(&mut join, id, slot(id, 11, 0, 0));
    }
    assert_eq!(
        text(&mut join),
        "filter 1 from 10 t100 t0 t1 t2 10/0 t100 t0 t1 t2 11/0"
    );
    for id in 0..STRANDS {
        give(&mut join, id, vec![status(10, SlotStatus::Dead)]);
        give(&mut join, id, slot(id, 10, 1, 0));
        give(&mut join, id, slot(id, 11, 1, 1));
    }
    assert_eq!(
        text(&mut join),
        "Dead 10 t100 t0 t1 t2 10/1 t100 t0 t1 t2 11/1"
    );
    // One takes a block back and gives the same one out again: the others' content is still there.
    give(&mut join, 1, vec![status(10, SlotStatus::Dead)]);
    give(&mut join, 1, slot(1, 10, 1, 0));
    give(&mut join, 1, slot(1, 11, 1, 1));
    assert_eq!(
        text(&mut join),
        "Dead 10 t100 t0 t1 t2 10/1 t100 t0 t1 t2 11/1"
    );
}

#[test]
fn a_filter_is_in_force_when_every_share_is_and_a_new_strand_counts_from_there_on() {
    let mut join = opened([10; STRANDS]);
    join.wanted(Generation(2), &Request::default());
    join.asked(0, Generation(5));
    join.opened(STRANDS, FIRST, None);
    for number in 10..12 {
        for id in 0..STRANDS {
            give(&mut join, id, slot(id, number, 0, 0));
        }
    }
    let before = text(&mut join);
    assert!(!before.contains("filter 2"), "{before}");
    show(&mut join, 0, Generation(5), 12);
    show(&mut join, STRANDS, FIRST, 11);
    assert_eq!(
        text(&mut join),
        "filter 2 from 12",
        "11 was given out without it"
    );
    for id in 0..STRANDS {
        give(&mut join, id, slot(id, 12, 0, 0));
    }
    assert_eq!(text(&mut join), "");
    give(&mut join, STRANDS, slot(STRANDS, 12, 0, 0));
    assert_eq!(text(&mut join), "t100 t0 t1 t2 t3 12/0");
    join.removed(1);
    for id in [0, 2, STRANDS] {
        give(&mut join, id, slot(id, 13, 0, 0));
    }
    assert_eq!(text(&mut join), "t100 t0 t2 t3 13/0");
}

#[test]
fn a_strand_that_is_lost_under_an_old_share_brings_what_waits_under_the_new_one() {
    let mut join = opened([10; STRANDS]);
    for id in 0..STRANDS {
        give(&mut join, id, slot(id, 10, 0, 0));
        give(&mut join, id, vec![status(10, SlotStatus::Confirmed)]);
    }
    give(&mut join, 0, slot(0, 11, 0, 0));
    join.wanted(Generation(2), &Request::default());
    join.asked(0, Generation(2));
    join.lost(0);
    assert_eq!(join.resume_slot(0), Some(10));
    join.opened(0, FIRST, None);
    for id in 1..STRANDS {
        give(&mut join, id, slot(id, 11, 0, 0));
    }
    text(&mut join);
    show(&mut join, 0, FIRST, 10);
    give(&mut join, 0, slot(0, 10, 0, 0));
    assert_eq!(text(&mut join), "filter 2 from 11");
    give(&mut join, 0, slot(0, 11, 0, 0));
    assert_eq!(text(&mut join), "t100 t0 t1 t2 11/0");
}

/// A write of one account in slot 10, which this filter selected.
fn write(version: u64, filter: &str) -> Update {
    Update {
        filters: vec![Generation(7).name(filter)],
        body: Body::Account(crate::update::AccountUpdate {
            slot: 10,
            pubkey: Pubkey::default(),
            owner: Pubkey::default(),
            lamports: 1,
            executable: false,
            rent_epoch: 0,
            data: bytes::Bytes::new(),
            write_version: version,
            txn_signature: None,
            is_startup: false,
        }),
        ..any_update(10)
    }
}

#[test]
fn an_account_that_all_strands_see_closed_counts_as_the_one_has_it_that_sees_its_owner() {
    let mut join = opened([10; STRANDS]);
    for id in 0..STRANDS {
        let mut updates = slot(id, 10, 0, 0);
        let writes = match id {
            1 => vec![write(4, "owners"), write(5, "closed"), write(6, "owners")],
            _ => vec![write(5, "closed")],
        };
        updates.splice(1..3, writes);
        give(&mut join, id, updates);
    }
    assert_eq!(text(&mut join), "filter 1 from 10 a4 a5 a6 10/0");
}

#[test]
fn an_account_counts_as_the_strand_has_it_that_watches_its_address() {
    let mut join = opened([10; STRANDS]);
    let filter = crate::request::AccountFilter {
        pubkeys: vec![Pubkey::default()],
        ..Default::default()
    };
    let request = Request {
        accounts: BTreeMap::from([("accounts".to_owned(), filter)]),
        ..Request::default()
    };
    join.wanted(Generation(1), &request);
    for id in 0..STRANDS {
        let mut updates = slot(id, 10, 0, 0);
        let writes = match id {
            0 => vec![write(900, "owners"), write(901, "owners")],
            1 => vec![write(5, "accounts")],
            _ => Vec::new(),
        };
        updates.splice(1..3, writes);
        give(&mut join, id, updates);
    }
    assert_eq!(text(&mut join), "filter 1 from 10 a5 10/0");
}

#[test]
fn whatever_the_order_and_the_losses_every_slot_comes_once_and_in_order() {
    const LAST: u64 = 120;
    for seed in 1..100 {
        let mut random = Random(seed);
        let mut join = opened([10; STRANDS]);
        let mut next = [10; STRANDS];
        let mut given = Vec::new();
        while next.iter().any(|next| *next <= LAST) {
            let id = random.below(STRANDS);
            if random.below(20) == 0 {
                // In the middle of a slot, now and then.
                give(&mut join, id, slot(id, next[id], 0, 0)[..2].to_vec());
                join.lost(id);
                next[id] = join.resume_slot(id).unwrap().max(10);
                join.opened(id, FIRST, None);
                show(&mut join, id, FIRST, next[id]);
            } else if next[id] <= LAST {
                give(&mut join, id, slot(id, next[id], 0, 0));
                if random.below(3) == 0 {
                    give(
                        &mut join,
                        id,
                        vec![status(next[id] - 1, SlotStatus::Confirmed)],
                    );
                }
                if random.below(3) == 0 && next[id] > 30 {
                    give(
                        &mut join,
                        id,
                        vec![status(next[id] - 20, SlotStatus::Finalized)],
                    );
                }
                next[id] += 1;
            }
            given.push(text(&mut join));
        }
        let given = given.join(" ");
        let blocks: Vec<&str> = given.split(' ').filter(|it| it.contains('/')).collect();
        let expected: Vec<String> = (10..=LAST).map(|slot| format!("{slot}/0")).collect();
        assert_eq!(blocks, expected, "seed {seed}");
        for transaction in ["t0", "t1", "t2", "t100"] {
            let count = given.split(' ').filter(|it| *it == transaction).count();
            assert_eq!(count, expected.len(), "seed {seed}, {transaction}");
        }
    }
}

#[test]
fn slots_that_wait_for_a_strand_are_bounded() {
    let mut join = opened([10; STRANDS]);
    let mut result = Ok(());
    for number in 10..1200 {
        for id in 1..STRANDS {
            let updates = slot(id, number, 0, 0).into_iter().map(Assembled::Update);
            result = result.and(join.add(id, updates.collect()));
        }
    }
    assert!(matches!(result, Err(StreamError::Other(_))));
    assert!(join.slots.len() <= MAX_SLOTS);
}
