//! [`StagedBatch`]: messages as they are staged, one row of one table.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    bodies::SharedBodies,
    endpoint_data::webhooks_json,
    message_rows::Rows,
    numbered::{Numbered, Turn},
    staged::{Staged, StagedMessage},
};
use crate::{
    LeaseToken, NewMessage, PackedMessages, StoreError, Timestamp,
    backend::{Bound, Connection, Row, bound_rows, over_rows, values},
};

/// How many of the ids `v` messages have.
const KNOWN: Bound<'_> = bound_rows!(
    [id text],
    "SELECT count(*) AS known FROM v WHERE v.id IS NOT NULL AND EXISTS (SELECT 1 FROM messages m WHERE m.id = v.id)"
);

/// What the messages of a batch got when they were committed.
#[derive(Debug, Deserialize, Serialize)]
struct Terms {
    /// Until when they are leased, and when they were created, in unix milliseconds.
    due_at: i64,
    created_at: i64,
    lease_token: i64,
    numbers: Vec<Numbers>,
}

/// The numbers of a webhook's messages: from the first one on.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Numbers {
    webhook: i64,
    id: String,
    first: u64,
    /// When they are due, in unix milliseconds, where they are not leased: nothing of the webhook can be for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_at: Option<i64>,
}

/// Stages messages in no lane. Those of one webhook are all leased, all until the same time by the same token, or none of them is.
/// False when one of them is stored already.
pub(super) async fn stage(
    write: &mut Connection,
    staged: &Staged,
    (batch, packed): (&[Numbered<'_>], &PackedMessages),
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some((due_at, token)) = batch.iter().find_map(|each| each.turn.lease()) else {
        return Ok(true);
    };
    let ids = batch.iter();
    let ids = ids.map(|each| values![each.message.id.as_str()]).collect();
    for row in &write.rows_over(KNOWN, ids).await? {
        if row.integer("known")? > 0 {
            return Ok(false);
        }
    }
    // Also where the transaction is undone: to remember more than there is costs a look-up.
    staged.remember(batch.iter().map(|each| StagedMessage {
        webhook: each.ordinal,
        id: each.message.id.as_str(),
        bytes: each.length,
        is_leased: each.turn.lease().is_some(),
    }));
    let mut numbers = BTreeMap::new();
    for each in batch {
        numbers.entry(each.ordinal).or_insert_with(|| Numbers {
            webhook: each.ordinal,
            id: each.message.webhook.as_str().to_owned(),
            first: each.number,
            due_at: match each.turn {
                Turn::Due(at) => Some(at.unix_millis()),
                Turn::Leased(..) | Turn::Waits => None,
            },
        });
    }
    let terms = Terms {
        due_at: due_at.unix_millis(),
        created_at: now.unix_millis(),
        lease_token: token.0,
        numbers: numbers.into_values().collect(),
    };
    let terms = serde_json::to_string(&terms).map_err(|_| CORRUPT)?;
    let pending = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    let (heads, bodies) = (packed.heads.clone(), packed.bodies.clone());
    write
        .execute(
            "INSERT INTO staged_batches (pending, messages, bodies, terms) VALUES ($1, $2, $3, $4)",
            values![pending, heads, bodies, terms],
        )
        .await?;
    Ok(true)
}

/// Messages that were staged together, as they are stored.
#[derive(Debug)]
pub(super) struct StagedBatch {
    messages: Vec<NewMessage>,
    terms: Terms,
}

impl StagedBatch {
    /// From a row with `messages`, `bodies` and these `terms`.
    pub(super) fn of(row: &Row, terms: &str) -> Result<Self, StoreError> {
        let packed = PackedMessages {
            count: row.unsigned("pending")?.try_into().map_err(|_| CORRUPT)?,
            heads: row.bytes("messages")?,
            bodies: row.bytes("bodies")?,
        };
        Ok(Self {
            messages: packed.unpack().ok_or(CORRUPT)?,
            terms: serde_json::from_str(terms).map_err(|_| CORRUPT)?,
        })
    }

    /// The rows of its messages, but for those of webhooks that are gone. What they share of their bodies is stored.
    pub(super) async fn rows(&self, write: &mut Connection) -> Result<Vec<Rows>, StoreError> {
        let webhooks = self.terms.numbers.iter().map(|numbers| numbers.webhook);
        let existing = existing(write, webhooks).await?;
        let numbered = self.numbered()?;
        let kept = numbered.iter();
        let kept: Vec<_> = kept
            .filter(|each| existing.contains(&each.ordinal))
            .collect();
        let bodies: Vec<_> = kept.iter().map(|each| &each.message.body).collect();
        let shared = SharedBodies::store(write, &bodies).await?;
        let rows = kept.into_iter();
        let created = Timestamp::from_unix_millis(self.terms.created_at);
        Ok(rows.map(|each| each.rows(&shared, created)).collect())
    }

    fn numbered(&self) -> Result<Vec<Numbered<'_>>, StoreError> {
        let terms = &self.terms;
        let until = Timestamp::from_unix_millis(terms.due_at);
        let lease = Turn::Leased(until, LeaseToken(terms.lease_token));
        let numbers = terms.numbers.iter();
        let mut numbers: HashMap<_, _> = numbers
            .map(|each| {
                let due_at = each.due_at.map(Timestamp::from_unix_millis);
                let turn = due_at.map_or(lease, Turn::Due);
                (each.id.as_str(), (each.webhook, each.first, turn))
            })
            .collect();
        let messages = self.messages.iter().map(|message| {
            let numbers = numbers.get_mut(message.webhook.as_str());
            let (ordinal, next, turn) = numbers.ok_or(CORRUPT)?;
            let number = *next;
            *next = number.saturating_add(1);
            Numbered::new(message, (*ordinal, number), None, *turn)
        });
        messages.collect()
    }
}

/// Those of the webhooks that there still are. One that is deleted has its messages settled first, but not by a process of a release
/// that stages nothing.
pub(super) async fn existing(
    write: &mut Connection,
    webhooks: impl IntoIterator<Item = i64>,
) -> Result<HashSet<i64>, StoreError> {
    let found = write
        .rows(
            over_rows!(
                [webhook bigint],
                "SELECT w.ordinal FROM v JOIN webhooks w ON w.ordinal = v.webhook"
            ),
            values![webhooks_json(webhooks)?],
        )
        .await?;
    found.iter().map(|row| row.integer("ordinal")).collect()
}

/// What is staged cannot be read.
pub(super) const CORRUPT: StoreError = StoreError::Corrupt {
    what: "staged_batches",
};
