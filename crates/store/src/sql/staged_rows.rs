//! Staged rows: what an earlier release staged, the rows of messages with their numbers, which is still settled.

use serde::Deserialize;

use super::{
    message_rows::{MessageRow, Rows},
    staged_batch::{CORRUPT, existing},
};
use crate::{
    StoreError,
    backend::{Connection, Row},
};

#[derive(Deserialize)]
struct StagedRow {
    #[serde(flatten)]
    row: MessageRow,
    body_bytes: usize,
}

/// The rows of the messages of a batch with `messages`, a JSON array, and `bodies`, one after the other; both are compressed.
pub(super) async fn rows(write: &mut Connection, batch: &Row) -> Result<Vec<Rows>, StoreError> {
    let staged: Vec<StagedRow> =
        serde_json::from_str(&unpacked(&batch.bytes("messages")?)?).map_err(|_| CORRUPT)?;
    let bodies = unpacked(&batch.bytes("bodies")?)?;
    let existing = existing(write, staged.iter().map(|each| each.row.webhook)).await?;
    let mut rest = bodies.as_str();
    let mut rows = Vec::with_capacity(staged.len());
    for StagedRow { row, body_bytes } in staged {
        let (body, later) = rest.split_at_checked(body_bytes).ok_or(CORRUPT)?;
        rest = later;
        if existing.contains(&row.webhook) {
            rows.push(row.with_body(body.to_owned()));
        }
    }
    Ok(rows)
}

fn unpacked(packed: &[u8]) -> Result<String, StoreError> {
    let text = zstd::decode_all(packed).map_err(|_| CORRUPT)?;
    String::from_utf8(text).map_err(|_| CORRUPT)
}
