//! Followed transactions: states by what the stream shows, forks, gaps, expiry, and how many are kept.

use base64::{Engine, prelude::BASE64_STANDARD};
use swap_guard_interface::{PROGRAM_ID, SWAPPED_DISCRIMINATOR};

use super::{outcome::Moved, *};

const EXCHANGE: solana_pubkey::Pubkey = cpmm::ids::PROGRAM_ID;

/// Height at which transactions are followed, far enough from where the stream began.
const HEIGHT: u64 = 1_000;

/// Last height at which they can land.
const LAST: u64 = HEIGHT + BLOCKHASH_LIFE;

fn signature(number: u64) -> Signature {
    let mut bytes = [1; 64];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Signature::from(bytes)
}

fn signed(number: u64) -> Signed {
    Signed {
        signature: signature(number),
        transaction: Arc::from(number.to_string()),
        last_valid_block_height: Some(LAST),
        has_nonce: false,
    }
}

/// The followed, and a chain of which every slot has a block, whose height is its slot.
struct Scene {
    all: FollowedTransactions,
    now: Instant,
}

impl Scene {
    /// One is followed, from a confirmed slot on that is as high as `HEIGHT`.
    fn new() -> Self {
        let mut scene = Self {
            all: FollowedTransactions::default(),
            now: Instant::now(),
        };
        scene.all.begin(false);
        for slot in HEIGHT - 100..=HEIGHT {
            scene.block(slot, slot - 1);
            scene.all.confirmed(slot, scene.now);
        }
        scene.follow(0).expect("room");
        scene
    }

    fn follow(&mut self, number: u64) -> Result<(), Full> {
        self.all.follow(signed(number), HEIGHT, self.now)
    }

    fn block(&mut self, slot: u64, parent: u64) {
        self.all.block(slot, parent, Some(slot));
    }

    fn execute(&mut self, number: u64, slot: u64) {
        let succeeded = Outcome::Succeeded(None);
        self.all
            .executed(&signature(number), slot, succeeded, self.now);
    }

    /// Blocks one upon the other up to this slot, all confirmed at once with the last.
    fn confirm_through(&mut self, from: u64, slot: u64) {
        for each in from..=slot {
            self.block(each, each - 1);
        }
        self.all.confirmed(slot, self.now);
    }

    fn followed(&self, number: u64) -> &Followed {
        let followed = self.all.get(&signature(number));
        followed.expect("it is followed")
    }

    fn state(&self, number: u64) -> State {
        self.followed(number).state()
    }

    fn at(&self, number: u64) -> Option<(u64, Commitment)> {
        match self.state(number) {
            State::Executed(execution) => Some((execution.slot, execution.commitment)),
            _ => None,
        }
    }

    fn sent_again(&self) -> usize {
        self.all.unconfirmed(HEIGHT).len()
    }
}

#[test]
fn what_is_executed_rises_with_its_slot_and_is_sent_until_it_is_confirmed() {
    let mut scene = Scene::new();
    assert_eq!((scene.state(0), scene.sent_again()), (State::Sent, 1));
    scene.execute(0, 1_001);
    assert_eq!(scene.at(0), Some((1_001, Commitment::Processed)));
    assert_eq!(scene.sent_again(), 1);
    // The slot that is confirmed builds on it.
    scene.confirm_through(1_001, 1_003);
    assert_eq!(scene.at(0), Some((1_001, Commitment::Confirmed)));
    assert_eq!(scene.sent_again(), 0);
    scene.all.finalized(1_002, scene.now);
    assert_eq!(scene.at(0), Some((1_001, Commitment::Finalized)));
    // The same once more, as a replay has it.
    scene.all.opened(1_001);
    scene.execute(0, 1_001);
    scene.all.confirmed(1_001, scene.now);
    assert_eq!(scene.at(0), Some((1_001, Commitment::Finalized)));
    assert!(scene.all.get(&signature(0)).expect("followed").has_ended());
}

#[test]
fn what_a_lost_fork_executed_is_sent_again_and_the_next_slot_counts() {
    let mut scene = Scene::new();
    scene.execute(0, 1_001);
    scene.all.undone(1_001);
    assert_eq!(scene.state(0), State::Sent);
    scene.execute(0, 1_001);
    scene.block(1_001, 1_000);
    // Another block takes the slot.
    scene.all.opened(1_001);
    assert_eq!(scene.state(0), State::Sent);
    scene.execute(0, 1_002);
    scene.execute(0, 1_003);
    assert_eq!(scene.at(0), Some((1_003, Commitment::Processed)));
    // The fork of slot 1002 wins.
    scene.block(1_002, 1_000);
    scene.block(1_003, 1_000);
    scene.block(1_004, 1_002);
    scene.all.confirmed(1_004, scene.now);
    assert_eq!(scene.at(0), Some((1_002, Commitment::Confirmed)));

    let mut scene = Scene::new();
    scene.execute(0, 1_001);
    scene.block(1_001, 1_000);
    scene.block(1_002, 1_000);
    scene.all.confirmed(1_002, scene.now);
    assert_eq!((scene.state(0), scene.sent_again()), (State::Sent, 1));
    // Late word of it changes nothing.
    scene.execute(0, 1_001);
    assert_eq!(scene.state(0), State::Sent);
}

#[test]
fn what_was_not_in_the_last_block_that_could_have_it_has_expired() {
    let mut scene = Scene::new();
    scene.follow(1).expect("room");
    scene.execute(1, 1_001);
    scene.confirm_through(1_001, LAST);
    assert_eq!(scene.state(0), State::Sent);
    assert_eq!(scene.all.unconfirmed(LAST).len(), 1);
    assert_eq!(scene.all.unconfirmed(LAST + 1).len(), 0);
    scene.confirm_through(LAST + 1, LAST + 1);
    assert_eq!(scene.state(0), State::Expired);
    assert_eq!(scene.at(1), Some((1_001, Commitment::Confirmed)));
}

#[test]
fn what_may_have_been_missed_is_unknown_and_not_expired() {
    // One with a durable nonce can land at any height.
    let mut scene = Scene::new();
    let nonced = Signed {
        has_nonce: true,
        ..signed(1)
    };
    scene.all.follow(nonced, HEIGHT, scene.now).expect("room");
    // Of one without a height its blockhash may be from before the stream began.
    let unbounded = Signed {
        last_valid_block_height: None,
        ..signed(2)
    };
    scene
        .all
        .follow(unbounded, HEIGHT, scene.now)
        .expect("room");
    // A stream that is lost and goes on where it was loses nothing.
    scene.all.lose();
    scene.all.begin(true);
    scene.confirm_through(1_001, LAST + 1);
    assert_eq!(scene.state(0), State::Expired);
    assert_eq!(scene.state(1), State::Unknown);
    assert_eq!(scene.state(2), State::Unknown);

    let mut scene = Scene::new();
    scene.all.lose();
    scene.all.begin(false);
    scene.confirm_through(LAST, LAST + 1);
    assert_eq!(scene.state(0), State::Unknown);
    // It is seen after all.
    scene.execute(0, LAST + 2);
    assert_eq!(scene.at(0), Some((LAST + 2, Commitment::Processed)));

    // A block is missing.
    let mut scene = Scene::new();
    scene.confirm_through(1_003, LAST + 1);
    assert_eq!(scene.state(0), State::Unknown);

    // The stream is lost for good.
    let mut scene = Scene::new();
    scene.follow(1).expect("room");
    scene.execute(1, 1_001);
    scene.all.pass(LAST + LOST_MARGIN_BLOCKS + 1, scene.now);
    assert_eq!(scene.state(0), State::Sent);
    scene.all.lose();
    scene.all.pass(LAST + LOST_MARGIN_BLOCKS, scene.now);
    assert_eq!(scene.state(0), State::Sent);
    scene.all.pass(LAST + LOST_MARGIN_BLOCKS + 1, scene.now);
    assert_eq!(
        (scene.state(0), scene.state(1)),
        (State::Unknown, State::Unknown)
    );
}

#[test]
fn one_that_landed_before_it_was_sent_here_is_known() {
    let mut scene = Scene::new();
    scene.execute(1, 1_001);
    scene.execute(2, 1_002);
    scene.execute(3, 1_004);
    scene.block(1_001, 1_000);
    scene.block(1_002, 1_000);
    scene.block(1_003, 1_001);
    scene.all.confirmed(1_003, scene.now);
    for number in 1..=3 {
        scene.follow(number).expect("room");
    }
    assert_eq!(scene.at(1), Some((1_001, Commitment::Confirmed)));
    assert_eq!(scene.state(2), State::Sent);
    assert_eq!(scene.at(3), Some((1_004, Commitment::Processed)));
    scene.execute(4, 1_004);
    scene.block(1_004, 1_003);
    scene.all.finalized(1_004, scene.now);
    scene.follow(4).expect("room");
    assert_eq!(scene.at(4), Some((1_004, Commitment::Finalized)));
}

#[test]
fn one_is_followed_once_and_knows_how_many_nodes_accepted_it() {
    let mut scene = Scene::new();
    scene.all.accepted(&signature(0), 1);
    scene.all.accepted(&signature(0), 1);
    assert_eq!(scene.all.take_changed(), [signature(0)]);
    scene.follow(0).expect("no room is needed");
    assert_eq!(scene.followed(0).accepted_by(), 1);
    scene.all.accepted(&signature(0), 0);
    assert_eq!(scene.followed(0).accepted_by(), 2);
    let far = Signed {
        last_valid_block_height: Some(u64::MAX),
        ..signed(1)
    };
    scene.all.follow(far, HEIGHT, scene.now).expect("room");
    let last = scene
        .all
        .get(&signature(1))
        .expect("followed")
        .last_valid_block_height;
    assert_eq!(last, LAST, "no blockhash lives longer");
}

#[test]
fn what_ended_is_forgotten_in_time_and_makes_room_where_there_is_none() {
    let mut scene = Scene::new();
    scene.execute(0, 1_001);
    scene.confirm_through(1_001, 1_001);
    scene.all.finalized(1_001, scene.now);
    scene.all.pass(
        0,
        scene.now + KEPT_FOR.saturating_sub(Duration::from_secs(1)),
    );
    assert!(scene.all.get(&signature(0)).is_some());
    for number in 1..u64::try_from(MOST_FOLLOWED).expect("a number") {
        scene.follow(number).expect("room");
    }
    scene
        .follow(1_000_000)
        .expect("the one that ended makes room");
    assert!(scene.all.get(&signature(0)).is_none());
    assert_eq!(scene.follow(1_000_001), Err(Full));
    scene.confirm_through(1_002, LAST + 1);
    scene.all.pass(LAST + 1, scene.now + KEPT_FOR);
    assert_eq!(scene.all.len(), 0);
}

#[test]
fn a_success_has_the_amounts_that_the_guard_measured() {
    let amounts = [5_u64, 7].map(u64::to_le_bytes).concat();
    let event = [&SWAPPED_DISCRIMINATOR[..], &[2; 64], &amounts].concat();
    let logs = [
        format!("Program {PROGRAM_ID} invoke [1]"),
        format!("Program data: {}", BASE64_STANDARD.encode(event)),
        format!("Program {PROGRAM_ID} consumed 9 of 10 compute units"),
        format!("Program {PROGRAM_ID} success"),
    ];
    let moved = Moved {
        spent: 5,
        received: 7,
    };
    assert_eq!(
        Outcome::of(None, &logs, &EXCHANGE),
        Outcome::Succeeded(Some(moved))
    );
    assert_eq!(
        Outcome::of(None, &logs[..1], &EXCHANGE),
        Outcome::Succeeded(None)
    );
    let Outcome::Failed(failure) = Outcome::of(Some("BlockhashNotFound"), &logs, &EXCHANGE) else {
        panic!("it failed");
    };
    assert_eq!(failure.message, "BlockhashNotFound");
}
