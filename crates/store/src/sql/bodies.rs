//! Ends of bodies that several messages share: what an event says is stored once for all webhooks that it matches.
//!
//! An end is stored in the transaction that inserts its messages, and no later one refers to it. So its messages only become
//! fewer, and it is removed with the last of them.

use std::collections::HashMap;

use serde::Serialize;

use super::{retried::retried, store::Store};
use crate::{
    BodyTemplate, StoreError,
    backend::{Connection, Durability, Sql, Value, bound_rows, json_rows, over_rows, values},
};

/// Fewest bytes of an end that is stored by itself: of shorter ones the row and the references to it would take as much.
const FEWEST_BYTES: usize = 256;

/// Bytes of ends written by one statement, unless a single one is longer.
const BYTES_AT_ONCE: usize = 4 << 20;

/// Numbers for `$1` ends; none while messages must not share any.
const ORDINALS: Sql = Sql {
    sqlite: "
        WITH RECURSIVE n (nth) AS (SELECT 1 UNION ALL SELECT nth + 1 FROM n WHERE nth < $1)
        SELECT (SELECT coalesce(max(ordinal), 0) FROM bodies) + n.nth AS ordinal
        FROM usage JOIN n ON usage.shares_bodies = 1",
    postgres: "
        SELECT nextval(pg_get_serial_sequence('bodies', 'ordinal')) AS ordinal
        FROM usage JOIN generate_series(1, CAST($1 AS BIGINT)) n ON usage.shares_bodies = 1",
};

/// The ends that a transaction has stored.
#[derive(Debug, Default)]
pub(super) struct SharedBodies {
    /// The numbers of their rows by the address of the text, of which there is one for all messages of an event.
    ordinals: HashMap<usize, i64>,
}

impl SharedBodies {
    /// Stores each end that several of these bodies have. All of them must be inserted in this transaction.
    pub(super) async fn store(
        write: &mut Connection,
        bodies: &[&BodyTemplate],
    ) -> Result<Self, StoreError> {
        let ends = shared_ends(bodies);
        let mut shared = Self::default();
        if ends.is_empty() {
            return Ok(shared);
        }
        let count = i64::try_from(ends.len()).unwrap_or(i64::MAX);
        let numbers = write.rows(ORDINALS, values![count]).await?;
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        for (end, number) in ends.into_iter().zip(&numbers) {
            let ordinal = number.integer("ordinal")?;
            shared.ordinals.insert(address(end), ordinal);
            bytes = bytes.saturating_add(end.len());
            rows.push(values![ordinal, end]);
            if bytes >= BYTES_AT_ONCE {
                insert(write, std::mem::take(&mut rows)).await?;
                bytes = 0;
            }
        }
        insert(write, rows).await?;
        Ok(shared)
    }

    /// A body as the message with this number has it.
    pub(super) fn stored(&self, body: &BodyTemplate, sequence: u64) -> StoredBody {
        let shared = self.of(body);
        let (body, shared_bytes) = match shared {
            Some(_) => (body.beginning(sequence), body.suffix().len()),
            None => (body.with_sequence(sequence), 0),
        };
        StoredBody {
            body,
            shared,
            shared_bytes: i64::try_from(shared_bytes).unwrap_or(i64::MAX),
        }
    }

    /// How many bytes the message has of a body at most.
    pub(super) fn stored_at_most(&self, body: &BodyTemplate) -> u64 {
        match self.of(body) {
            Some(_) => body.beginning_at_most(),
            None => body.len_at_most(),
        }
    }

    fn of(&self, body: &BodyTemplate) -> Option<i64> {
        self.ordinals.get(&address(body.suffix())).copied()
    }
}

/// A body as a message has it.
pub(super) struct StoredBody {
    /// All of it, or its beginning.
    pub(super) body: String,
    /// The number of the row with its end, if that is shared.
    pub(super) shared: Option<i64>,
    /// Bytes of the end, if it is shared.
    pub(super) shared_bytes: i64,
}

/// The ends that more than one of the bodies has, each once, in the order in which they are found to be shared.
fn shared_ends<'a>(bodies: &[&'a BodyTemplate]) -> Vec<&'a str> {
    let mut times: HashMap<usize, u32> = HashMap::new();
    let mut shared = Vec::new();
    let ends = bodies.iter().map(|body| body.suffix());
    for end in ends.filter(|end| end.len() >= FEWEST_BYTES) {
        let times = times.entry(address(end)).or_default();
        *times = times.saturating_add(1);
        if *times == 2 {
            shared.push(end);
        }
    }
    shared
}

fn address(end: &str) -> usize {
    end.as_ptr().addr()
}

async fn insert(write: &mut Connection, rows: Vec<Vec<Value>>) -> Result<(), StoreError> {
    let bound = bound_rows!(
        [ordinal bigint, rest text],
        "INSERT INTO bodies (ordinal, rest) SELECT ordinal, rest FROM v WHERE ordinal IS NOT NULL"
    );
    write.execute_over(bound, rows).await.map(drop)
}

/// The shared ends of messages that are about to be removed. Until the transaction ends nobody else removes messages that have
/// them: of two who remove the last two at once, neither would see that no message is left.
#[derive(Debug)]
pub(super) struct Loosened {
    /// A JSON array; `None` when there is none of them.
    bodies: Option<String>,
}

#[derive(Serialize)]
struct Loose {
    body: i64,
}

impl Loosened {
    /// By the messages' keys, a JSON array.
    pub(super) async fn by(write: &mut Connection, messages: &str) -> Result<Self, StoreError> {
        let found = write
            .rows(
                over_rows!(
                    [webhook bigint, sequence bigint],
                    "SELECT DISTINCT m.shared_body AS body
                     FROM v JOIN messages m ON m.webhook = v.webhook AND m.sequence = v.sequence
                     WHERE m.shared_body IS NOT NULL"
                ),
                values![messages],
            )
            .await?;
        if found.is_empty() {
            return Ok(Self { bodies: None });
        }
        let loose = found
            .iter()
            .map(|row| {
                Ok(Loose {
                    body: row.integer("body")?,
                })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        let bodies = json_rows(&loose)?;
        write
            .lock(
                "SELECT b.ordinal FROM bodies b WHERE b.ordinal IN (
                     SELECT t.body FROM json_to_recordset(CAST($1 AS json)) AS t (body bigint))
                 ORDER BY b.ordinal FOR UPDATE",
                values![bodies.clone()],
            )
            .await?;
        Ok(Self {
            bodies: Some(bodies),
        })
    }

    /// Removes those that no message has any more.
    pub(super) async fn remove(self, write: &mut Connection) -> Result<(), StoreError> {
        let Some(bodies) = self.bodies else {
            return Ok(());
        };
        write
            .execute(
                over_rows!(
                    [body bigint],
                    "DELETE FROM bodies WHERE ordinal IN (SELECT body FROM v)
                         AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.shared_body = bodies.ordinal)"
                ),
                values![bodies],
            )
            .await
            .map(drop)
    }
}

impl Store {
    /// Lets messages share the ends of their bodies from now on, and be staged, where a database of an earlier release does not yet:
    /// its processes would deliver the beginnings alone, and see nothing of what is staged, so none may run any more. False when
    /// messages did so before.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn share_bodies(&self) -> Result<bool, StoreError> {
        retried!(self.try_share_bodies())
    }

    async fn try_share_bodies(&self) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let changed = share(&mut write).await?;
        write.commit().await?;
        Ok(changed)
    }
}

/// Lets messages share ends; false when they did before.
pub(super) async fn share(write: &mut Connection) -> Result<bool, StoreError> {
    let changed = write
        .execute(
            "UPDATE usage SET shares_bodies = 1 WHERE shares_bodies = 0",
            values![],
        )
        .await?;
    Ok(changed > 0)
}

/// Whether messages may share ends.
pub(super) async fn are_shared(connection: &mut Connection) -> Result<bool, StoreError> {
    let row = connection
        .one_row("SELECT shares_bodies FROM usage", values![])
        .await?;
    row.flag("shares_bodies")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn ends_are_shared_that_several_bodies_have_and_that_are_worth_a_row() {
        let of = |end: &Arc<str>| BodyTemplate::new("{".to_owned(), Arc::clone(end));
        let long: Arc<str> = "x".repeat(FEWEST_BYTES).into();
        let (alone, short): (Arc<str>, Arc<str>) = ((&*long).into(), "}".into());
        let bodies = [&short, &long, &alone, &long, &short, &long].map(of);
        let bodies: Vec<_> = bodies.iter().collect();
        let shared: Vec<_> = shared_ends(&bodies).into_iter().map(address).collect();
        assert_eq!(shared, [address(&long)]);
    }
}
