//! Standstill: whether slots come of which nothing is stored (pure).
//!
//! A stream that shows nothing, a database and a node each have a fault of their own. This is for what is left when none of them
//! has one: slots are held back for one that does not come whole, or nothing confirms them. What moves, however slowly, does not
//! stand still.

use std::{
    fmt,
    time::{Duration, Instant},
};

use sluice_store::{Checkpoints, Commitment};

use super::MAX_SLOT_AGE;

/// How many times as long as makes a process not ready it stands still before its stream is opened anew: whoever watches the
/// readiness hears of it, and what was about to move by itself has moved.
const FIRST_PATIENCE: u32 = 2;

/// The same after many new streams in a row that have not helped: each doubles it. Where the chain does not confirm, none helps,
/// and each has the server replay what is not confirmed.
const LONGEST_PATIENCE: u32 = 32;

/// What stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    commitment: Commitment,
    /// The slot that was stored last; `None` where none was since the process has begun.
    after: Option<u64>,
    /// For how long.
    stood: Duration,
    /// How long it may.
    longest: Duration,
}

/// The checkpoints against the slots that come, in wall time.
#[derive(Debug)]
pub(super) struct Standstill {
    longest: Duration,
    /// The newest slot that came, and when.
    newest: Option<(u64, Instant)>,
    confirmed: Checkpoint,
    finalized: Checkpoint,
    /// Whether a webhook waits for finality: what nobody waits for may stand still.
    is_finality_wanted: bool,
    /// When the stream was to be opened anew last.
    renewed: Option<Instant>,
}

/// The checkpoint of a commitment.
#[derive(Debug)]
struct Checkpoint {
    /// Where it was seen last.
    last: Option<u64>,
    /// Where it was furthest: a new stream may begin before it.
    furthest: Option<u64>,
    /// Since when slots have come without its moving.
    since: Option<Instant>,
    /// How often `longest` passes before the stream is opened anew.
    patience: u32,
}

impl Standstill {
    /// Nothing came yet. `longest` is for how long slots may come of which nothing is stored.
    pub(super) const fn new(longest: Duration) -> Self {
        Self {
            longest,
            newest: None,
            confirmed: Checkpoint::new(),
            finalized: Checkpoint::new(),
            is_finality_wanted: false,
            renewed: None,
        }
    }

    /// The newest slot that has come is this one, which may be stored already. While no newer one comes time does not count:
    /// another fault is told of then.
    pub(super) fn came(&mut self, slot: u64, now: Instant) {
        if self.newest.is_some_and(|(newest, _)| slot <= newest) {
            return;
        }
        let goes_on = self.goes_on(now);
        self.newest = Some((slot, now));
        for checkpoint in [&mut self.confirmed, &mut self.finalized] {
            let since = checkpoint.since.filter(|_| goes_on);
            let is_missing = Some(slot) > checkpoint.last;
            checkpoint.since = since.or_else(|| is_missing.then_some(now));
        }
    }

    /// These checkpoints are stored.
    pub(super) fn stored(&mut self, checkpoints: &Checkpoints, is_finality_wanted: bool) {
        self.is_finality_wanted = is_finality_wanted;
        for (commitment, slot) in checkpoints.iter() {
            match commitment {
                Commitment::Processed => {}
                Commitment::Confirmed => self.confirmed.moved(slot),
                Commitment::Finalized => self.finalized.moved(slot),
            }
        }
    }

    /// What has stood still for longer than it may.
    pub(super) fn stands(&self, now: Instant) -> Option<Stands> {
        let mut watched = self.watched(now);
        watched.find_map(|(commitment, checkpoint)| {
            let stood = now.saturating_duration_since(checkpoint.since?);
            (stood >= self.longest).then_some(Stands {
                commitment,
                after: checkpoint.last,
                stood,
                longest: self.longest,
            })
        })
    }

    /// What has stood still for so long that the stream is to be opened anew, told once: then time counts from the beginning, and
    /// longer.
    pub(super) fn renewal(&mut self, now: Instant) -> Option<Stands> {
        let stands = self.stands(now)?;
        let renewed = self.renewed;
        let is_due = self.watched(now).any(|(_, checkpoint)| {
            let since = checkpoint.since.map(|since| Some(since).max(renewed));
            let waited = since
                .flatten()
                .map(|since| now.saturating_duration_since(since));
            waited >= Some(self.longest.saturating_mul(checkpoint.patience))
        });
        if !is_due {
            return None;
        }
        self.renewed = Some(now);
        for checkpoint in [&mut self.confirmed, &mut self.finalized] {
            if checkpoint.since.is_some() {
                let longer = checkpoint.patience.saturating_mul(2);
                checkpoint.patience = longer.min(LONGEST_PATIENCE);
            }
        }
        Some(stands)
    }

    /// The checkpoints that should move at `now`: none while no slot comes.
    fn watched(&self, now: Instant) -> impl Iterator<Item = (Commitment, &Checkpoint)> {
        let confirmed = (Commitment::Confirmed, &self.confirmed);
        let finalized = (Commitment::Finalized, &self.finalized);
        let wanted = self.is_finality_wanted;
        let all = [Some(confirmed), wanted.then_some(finalized)];
        let goes_on = self.goes_on(now);
        all.into_iter().flatten().filter(move |_| goes_on)
    }

    /// Whether slots come.
    fn goes_on(&self, now: Instant) -> bool {
        let age = |(_, at)| now.saturating_duration_since(at);
        self.newest.map(age).is_some_and(|age| age <= MAX_SLOT_AGE)
    }
}

impl Checkpoint {
    const fn new() -> Self {
        Self {
            last: None,
            furthest: None,
            since: None,
            patience: FIRST_PATIENCE,
        }
    }

    /// It was stored here, which may be what another stream had stored before.
    fn moved(&mut self, slot: u64) {
        if self.last != Some(slot) {
            self.last = Some(slot);
            self.since = None;
        }
        if Some(slot) > self.furthest {
            self.furthest = Some(slot);
            self.patience = FIRST_PATIENCE;
        }
    }
}

impl fmt::Display for Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("slots come, and none ")?;
        if let Some(after) = self.after {
            write!(f, "after {after} ")?;
        }
        let (stood, longest) = (self.stood.as_secs(), self.longest.as_secs());
        let commitment = self.commitment.name();
        write!(
            f,
            "was stored at {commitment} for {stood} s (indexer.longest-standstill-secs is {longest}): see whether the cluster \
             confirms slots, and name a server that replays them; the stream is opened anew by itself"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    /// A standstill whose time is played, with a slot each second.
    struct Played {
        standstill: Standstill,
        now: Instant,
        slot: u64,
    }

    impl Played {
        fn begin() -> Self {
            Self {
                standstill: Standstill::new(LONGEST),
                now: Instant::now(),
                slot: 1_000,
            }
        }

        /// This many slots come.
        fn come(&mut self, count: u64) {
            for _ in 0..count {
                self.slot += 1;
                self.now += Duration::from_secs(1);
                self.standstill.came(self.slot, self.now);
            }
        }

        /// The newest slot is stored at these commitments, and a webhook waits for finality.
        fn store(&mut self, commitments: &[Commitment]) {
            for commitment in commitments {
                let stored = Checkpoints::at(*commitment, self.slot);
                self.standstill.stored(&stored, true);
            }
        }

        fn stands(&self) -> Option<String> {
            let stands = self.standstill.stands(self.now);
            stands.map(|stands| stands.to_string())
        }

        /// The seconds after which the stream is opened anew, of so many in which slots come.
        fn renewals(&mut self, seconds: u64) -> Vec<u64> {
            let mut renewals = Vec::new();
            for second in 1..=seconds {
                self.come(1);
                if self.standstill.renewal(self.now).is_some() {
                    renewals.push(second);
                }
            }
            renewals
        }
    }

    const BOTH: [Commitment; 2] = [Commitment::Confirmed, Commitment::Finalized];

    #[test]
    fn slots_that_come_and_are_not_stored_are_told_with_the_bound_and_the_remedy() {
        let mut played = Played::begin();
        played.come(1);
        played.store(&BOTH);
        // Time counts from the first slot that is not stored.
        played.come(60);
        assert_eq!(played.stands(), None);
        played.come(1);
        let told = played.stands().expect("stands still");
        assert!(
            told.starts_with("slots come, and none after 1001 was stored at confirmed for 60 s"),
            "{told}"
        );
        for words in [
            "indexer.longest-standstill-secs is 60",
            "see whether",
            "by itself",
        ] {
            assert!(told.contains(words), "{told}");
        }
        played.store(&BOTH);
        assert_eq!(played.stands(), None, "it moves again");
    }

    #[test]
    fn what_moves_however_slowly_does_not_stand_still() {
        let mut played = Played::begin();
        for _ in 0..50 {
            played.come(60);
            assert_eq!(played.stands(), None);
            played.store(&BOTH);
        }
    }

    #[test]
    fn slots_that_were_stored_before_and_are_read_once_more_count_as_moving() {
        let mut played = Played::begin();
        played.come(100);
        played.store(&BOTH);
        for replayed in 1_040..1_100 {
            played.come(30);
            let stored = Checkpoints::at(Commitment::Confirmed, replayed);
            played.standstill.stored(&stored, false);
            assert_eq!(played.stands(), None, "{replayed}");
        }
    }

    #[test]
    fn a_slot_that_is_stored_before_anybody_looks_whether_it_came_is_not_waited_for() {
        let longest = MAX_SLOT_AGE / 2;
        let mut standstill = Standstill::new(longest);
        let now = Instant::now();
        standstill.came(1_000, now);
        standstill.stored(&Checkpoints::at(Commitment::Confirmed, 1_001), false);
        standstill.came(1_001, now);
        assert_eq!(standstill.stands(now + longest), None);
        standstill.came(1_002, now);
        assert!(standstill.stands(now + longest).is_some());
    }

    #[test]
    fn nothing_stands_still_while_the_stream_shows_nothing_new() {
        let mut played = Played::begin();
        played.come(59);
        played.now += MAX_SLOT_AGE + Duration::from_secs(1);
        played.standstill.came(played.slot, played.now);
        assert_eq!(played.stands(), None, "it has its own fault");
        played.come(60);
        assert_eq!(played.stands(), None, "it counts from its return on");
        played.come(1);
        assert!(played.stands().is_some());
        played.now += MAX_SLOT_AGE + Duration::from_secs(1);
        assert_eq!(played.stands(), None);
        assert_eq!(played.standstill.renewal(played.now), None);
    }

    #[test]
    fn finality_counts_where_a_webhook_waits_for_it() {
        let mut played = Played::begin();
        for wanted in [false, true] {
            for _ in 0..61 {
                played.come(1);
                let stored = Checkpoints::at(Commitment::Confirmed, played.slot);
                played.standstill.stored(&stored, wanted);
            }
            let told = played.stands();
            assert_eq!(told.is_some(), wanted, "{told:?}");
            let names = |told: &String| told.contains("none was stored at finalized");
            assert!(told.as_ref().is_none_or(names), "{told:?}");
        }
    }

    #[test]
    fn the_stream_is_opened_anew_after_twice_as_long_and_then_ever_later() {
        let mut played = Played::begin();
        played.come(1);
        played.store(&BOTH);
        // Counted from the first slot that is not stored, which comes in the first second.
        let waits: [u64; 6] = [2, 4, 8, 16, 32, 32];
        let expected = waits.iter().scan(1, |at, wait| {
            *at += wait * LONGEST.as_secs();
            Some(*at)
        });
        let expected: Vec<u64> = expected.collect();
        assert_eq!(played.renewals(94 * 60 + 1), expected);
        assert!(played.stands().is_some(), "a new stream alone is no remedy");
        played.store(&BOTH);
        assert_eq!(played.renewals(121), [121], "it has moved meanwhile");
    }

    #[test]
    fn what_a_new_stream_brings_once_more_makes_it_no_more_impatient() {
        let mut played = Played::begin();
        played.come(1);
        played.store(&BOTH);
        assert_eq!(played.renewals(121), [121]);
        for replayed in [1_000, 1_001] {
            let stored = Checkpoints::at(Commitment::Confirmed, replayed);
            played.standstill.stored(&stored, false);
        }
        assert_eq!(played.renewals(241), [241]);
    }
}
