//! Storing what a slot means.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::{
    Store,
    lanes::{self, Lane},
    rows,
};
use crate::{
    Commit, Committed, DeliveryOrder, NewMessage, StoreError, Timestamp,
    database::{
        Connection, Durability, Value, bound_rows, json_rows, over_rows, signed, unsigned, values,
    },
};

/// Messages written by one statement: enough that the statement costs little per message, few enough that
/// their bodies, up to megabytes each, are not all in memory twice.
const CHUNK: usize = 256;

/// A webhook as far as numbering goes.
struct Numbering {
    ordinal: i64,
    next: u64,
    order: DeliveryOrder,
}

#[derive(Serialize)]
struct Id<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct SequenceRow {
    webhook: i64,
    next: i64,
}

#[derive(Serialize)]
struct SlotRow<'a> {
    slot: i64,
    blockhash: Option<&'a str>,
}

impl Store {
    /// Stores messages, numbers them in the order given, and moves a checkpoint: all of it or nothing. On
    /// disk when it returns. Known messages and those of webhooks that were deleted meanwhile are
    /// skipped.
    ///
    /// # Errors
    /// A failure of the database; nothing is stored then.
    pub async fn commit(&self, commit: &Commit<'_>) -> Result<Committed, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let inserted = if commit.messages.is_empty() {
            0
        } else {
            insert_messages(&mut write, commit.messages, commit.now).await?
        };
        let checkpoint = match commit.checkpoint {
            Some((commitment, slot)) => {
                Some(move_checkpoint(&mut write, commitment.name(), slot).await?)
            }
            None => None,
        };
        note_slots(&mut write, commit).await?;
        write.commit().await?;
        Ok(Committed {
            inserted,
            checkpoint,
        })
    }
}

async fn insert_messages(
    write: &mut Connection,
    messages: &[NewMessage],
    now: Timestamp,
) -> Result<u64, StoreError> {
    let mut numbering = numbering(write, messages).await?;
    let fresh = fresh(write, messages).await?;
    let wanted = lanes_of(&numbering, &fresh);
    let mut busy: HashSet<Lane> = lanes::busy(write, &wanted).await?.into_iter().collect();
    let (mut inserted, mut bytes) = (0_u64, 0_u64);
    for chunk in fresh.chunks(CHUNK) {
        let (mut message_rows, mut delivery_rows) = (Vec::new(), Vec::new());
        for message in chunk {
            let Some(webhook) = numbering.get_mut(message.webhook.as_str()) else {
                continue;
            };
            let lane = lanes::lane_of(webhook.order, message.order_key.as_deref());
            let waits = lane.as_ref().is_some_and(|lane| {
                !busy.insert(Lane {
                    webhook: webhook.ordinal,
                    lane: lane.clone(),
                })
            });
            let sequence = signed(webhook.next, "sequence")?;
            let body = message.body.with_sequence(webhook.next);
            bytes = bytes.saturating_add(u64::try_from(body.len()).unwrap_or(u64::MAX));
            let due_at = (!waits).then_some(now);
            delivery_rows.push(values![webhook.ordinal, sequence, due_at, lane, now]);
            message_rows.push(values![
                webhook.ordinal,
                sequence,
                message.id.as_str(),
                message.kind.name(),
                message.commitment.name(),
                signed(message.slot, "slot")?,
                message.order_key.clone(),
                body,
                now,
            ]);
            webhook.next = webhook.next.saturating_add(1);
            inserted = inserted.saturating_add(1);
        }
        insert_rows(write, message_rows, delivery_rows).await?;
    }
    if inserted > 0 {
        write_sequences(write, &numbering).await?;
        write
            .execute(
                "UPDATE usage SET messages = messages + $1, bytes = bytes + $2",
                values![signed(inserted, "count")?, signed(bytes, "size")?],
            )
            .await?;
    }
    Ok(inserted)
}

/// The webhooks concerned that still exist. Until the transaction ends nobody else numbers their messages
/// or changes their lanes.
async fn numbering<'a>(
    write: &mut Connection,
    messages: &'a [NewMessage],
) -> Result<HashMap<&'a str, Numbering>, StoreError> {
    let names: HashSet<&str> = messages
        .iter()
        .map(|message| message.webhook.as_str())
        .collect();
    let ids: Vec<_> = names.iter().map(|id| Id { id }).collect();
    let ids = json_rows(&ids)?;
    write
        .lock(
            "SELECT s.webhook FROM sequences s JOIN webhooks w ON w.ordinal = s.webhook
             WHERE w.id IN (SELECT t.id FROM json_to_recordset(CAST($1 AS json)) AS t (id text))
             ORDER BY s.webhook FOR UPDATE OF s",
            values![ids.clone()],
        )
        .await?;
    let found = write
        .rows(
            over_rows!(
                [id text],
                "SELECT w.ordinal, w.id, w.delivery_order, s.next
                 FROM v JOIN webhooks w ON w.id = v.id JOIN sequences s ON s.webhook = w.ordinal
                 WHERE w.deleted = 0"
            ),
            values![ids],
        )
        .await?;
    let mut numbering = HashMap::new();
    for row in &found {
        let id = row.text("id")?;
        if let Some(name) = names.get(id.as_str()) {
            let webhook = Numbering {
                ordinal: row.integer("ordinal")?,
                next: unsigned(row.integer("next")?, "sequences.next")?,
                order: rows::order(row)?,
            };
            numbering.insert(*name, webhook);
        }
    }
    Ok(numbering)
}

/// Those of the messages that are not stored, each once.
async fn fresh<'a>(
    write: &mut Connection,
    messages: &'a [NewMessage],
) -> Result<Vec<&'a NewMessage>, StoreError> {
    let mut seen = HashSet::new();
    for chunk in messages.chunks(CHUNK) {
        let ids: Vec<_> = chunk
            .iter()
            .map(|message| Id {
                id: message.id.as_str(),
            })
            .collect();
        let known = write
            .rows(
                over_rows!([id text], "SELECT m.id FROM v JOIN messages m ON m.id = v.id"),
                values![json_rows(&ids)?],
            )
            .await?;
        for row in &known {
            seen.insert(row.text("id")?);
        }
    }
    Ok(messages
        .iter()
        .filter(|message| seen.insert(message.id.as_str().to_owned()))
        .collect())
}

fn lanes_of(numbering: &HashMap<&str, Numbering>, messages: &[&NewMessage]) -> Vec<Lane> {
    let lanes: HashSet<Lane> = messages
        .iter()
        .filter_map(|message| {
            let webhook = numbering.get(message.webhook.as_str())?;
            Some(Lane {
                webhook: webhook.ordinal,
                lane: lanes::lane_of(webhook.order, message.order_key.as_deref())?,
            })
        })
        .collect();
    lanes.into_iter().collect()
}

async fn insert_rows(
    write: &mut Connection,
    messages: Vec<Vec<Value>>,
    deliveries: Vec<Vec<Value>>,
) -> Result<(), StoreError> {
    write
        .rows_over(
            bound_rows!(
                [
                    webhook bigint, sequence bigint, id text, kind text, commitment text, slot bigint,
                    order_key text, body text, created_at bigint
                ],
                "INSERT INTO messages
                     (webhook, sequence, id, kind, commitment, slot, order_key, body, created_at)
                 SELECT webhook, sequence, id, kind, commitment, slot, order_key, body, created_at
                 FROM v WHERE webhook IS NOT NULL"
            ),
            messages,
        )
        .await?;
    write
        .rows_over(
            bound_rows!(
                [webhook bigint, sequence bigint, due_at bigint, lane text, created_at bigint],
                "INSERT INTO deliveries (webhook, sequence, due_at, lane, created_at)
                 SELECT webhook, sequence, due_at, lane, created_at FROM v WHERE webhook IS NOT NULL"
            ),
            deliveries,
        )
        .await?;
    Ok(())
}

async fn write_sequences(
    write: &mut Connection,
    numbering: &HashMap<&str, Numbering>,
) -> Result<(), StoreError> {
    let next = numbering
        .values()
        .map(|webhook| {
            Ok(SequenceRow {
                webhook: webhook.ordinal,
                next: signed(webhook.next, "sequence")?,
            })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    write
        .execute(
            over_rows!(
                [webhook bigint, next bigint],
                "UPDATE sequences SET next = v.next FROM v WHERE sequences.webhook = v.webhook"
            ),
            values![json_rows(&next)?],
        )
        .await?;
    Ok(())
}

async fn move_checkpoint(
    write: &mut Connection,
    commitment: &'static str,
    slot: u64,
) -> Result<u64, StoreError> {
    write
        .one_row(
            "INSERT INTO checkpoints (commitment, slot) VALUES ($1, $2)
             ON CONFLICT (commitment) DO UPDATE SET slot =
                 CASE WHEN excluded.slot > checkpoints.slot THEN excluded.slot ELSE checkpoints.slot END
             RETURNING slot",
            values![commitment, signed(slot, "slot")?],
        )
        .await?
        .unsigned("slot")
}

async fn note_slots(write: &mut Connection, commit: &Commit<'_>) -> Result<(), StoreError> {
    let slot_row = |slot: u64, blockhash| -> Result<SlotRow<'_>, StoreError> {
        Ok(SlotRow {
            slot: signed(slot, "slot")?,
            blockhash,
        })
    };
    if !commit.opened.is_empty() {
        let opened = commit
            .opened
            .iter()
            .map(|open| slot_row(open.slot, open.blockhash.as_deref()))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint, blockhash text],
                    "INSERT INTO open_slots (slot, blockhash) SELECT slot, blockhash FROM v WHERE true
                     ON CONFLICT (slot) DO UPDATE
                     SET blockhash = coalesce(excluded.blockhash, open_slots.blockhash)"
                ),
                values![json_rows(&opened)?],
            )
            .await?;
    }
    if !commit.settled.is_empty() {
        let settled = commit
            .settled
            .iter()
            .map(|slot| slot_row(*slot, None))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint],
                    "DELETE FROM open_slots WHERE slot IN (SELECT slot FROM v)"
                ),
                values![json_rows(&settled)?],
            )
            .await?;
    }
    Ok(())
}
