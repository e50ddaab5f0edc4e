//! Batches that were accepted at the first attempt at each of their messages: recorded by one statement each, with the attempt kept
//! once.

use std::ops::Range;

use super::sequence_range::SequenceRange;
use crate::{
    AttemptResult, Outcome, StoreError, Timestamp,
    backend::{Connection, values},
};

/// Lets deliveries `$2` to `$3` of webhook `$1` be delivered by their first attempt, which ended at `$4`, whoever holds their leases. Its
/// row is kept with the last of them, which retention removes last. One that got a lane meanwhile must wake what follows in it.
const ACCEPT: &str = "
    UPDATE deliveries SET state = 'delivered', attempts = 1, retry_index = retry_index + 1, lease_token = NULL, due_at = NULL,
        finished_at = $4, attempted_with = NULLIF($3, sequence)
    WHERE webhook = $1 AND sequence BETWEEN $2 AND $3 AND state = 'pending' AND attempts = 0 AND lane IS NULL";

/// Such batches among some results.
#[derive(Default)]
pub(super) struct AcceptedBatches(Vec<AcceptedBatch>);

struct AcceptedBatch {
    /// Where its results are.
    places: Range<usize>,
    range: SequenceRange,
    ended: Timestamp,
}

impl AcceptedBatches {
    /// Those of them that are worth a statement. The results of a batch follow one another, and the first alone says what it means
    /// for the endpoint.
    pub(super) fn among(results: &[AttemptResult]) -> Self {
        let mut from = 0;
        let batches = results.chunk_by(|_, next| next.observation.is_none());
        let batches = batches.filter_map(|batch| {
            let places = from..from + batch.len();
            from = places.end;
            AcceptedBatch::of(batch, places)
        });
        Self(batches.collect())
    }

    /// Whether the result at this place is one of theirs.
    pub(super) fn contain(&self, place: usize) -> bool {
        self.at(place).is_some()
    }

    /// Whether the attempt of the result at this place is kept with another message.
    pub(super) fn attempt_is_kept_of_another(&self, place: usize) -> bool {
        self.at(place)
            .is_some_and(|batch| place + 1 < batch.places.end)
    }

    fn at(&self, place: usize) -> Option<&AcceptedBatch> {
        let after = self.0.partition_point(|batch| batch.places.end <= place);
        let batch = self.0.get(after)?;
        batch.places.contains(&place).then_some(batch)
    }

    /// Writes them. Returns the deliveries, each with the number of its attempt; `None` when one was attempted before, or is in
    /// a lane: the transaction must be undone then.
    pub(super) async fn accept(
        &self,
        write: &mut Connection,
    ) -> Result<Option<Vec<((i64, i64), i64)>>, StoreError> {
        let each = self.0.iter().map(|batch| {
            let SequenceRange {
                webhook,
                first,
                last,
            } = batch.range;
            values![webhook, first, last, batch.ended]
        });
        let changed = write.execute_each(ACCEPT, each.collect()).await?;
        // None of them changes more than it has, so all of them together have changed all only if each has.
        let all: usize = self.0.iter().map(|batch| batch.places.len()).sum();
        if changed != u64::try_from(all).unwrap_or(u64::MAX) {
            return Ok(None);
        }
        let ranges = self.0.iter().map(|batch| batch.range);
        let deliveries = ranges.flat_map(|range| {
            let sequences = range.first..=range.last;
            sequences.map(move |sequence| ((range.webhook, sequence), 1))
        });
        Ok(Some(deliveries.collect()))
    }
}

impl AcceptedBatch {
    /// The results at these places, if they are such a batch.
    fn of(batch: &[AttemptResult], places: Range<usize>) -> Option<Self> {
        let first = batch.first()?;
        let accepted = batch.iter().all(|each| {
            let lease = &each.lease;
            each.outcome == Outcome::Delivered
                && !lease.in_order
                && lease.ordinal == first.lease.ordinal
        });
        let sequences = batch.iter().map(|each| i64::try_from(each.lease.sequence));
        let sequences: Vec<i64> = sequences.collect::<Result<_, _>>().ok()?;
        let [range] = SequenceRange::of(first.lease.ordinal, sequences)[..] else {
            return None;
        };
        (accepted && range.is_worth_a_statement()).then_some(Self {
            places,
            range,
            ended: first.attempt.ended(),
        })
    }
}
