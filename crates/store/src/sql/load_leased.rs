//! Loads deliveries that were leased: messages with their whole bodies, and what their endpoints need.

use std::collections::{BTreeSet, HashMap};

use super::{
    endpoint_data::{DeliveryData, EndpointData},
    rows,
};
use crate::{
    EncryptionKeys, LeaseRequest, LeasedDelivery, StoreError, Timestamp,
    backend::{Connection, bound_rows, unsigned, values},
};

/// A delivery that was leased, by its key, and the first one of its batch.
#[derive(Debug)]
pub(super) struct LeasedKey {
    pub(super) webhook: i64,
    pub(super) sequence: i64,
    pub(super) head: i64,
    /// When its attempt may begin, where its webhook has a rate.
    pub(super) turn: Option<Timestamp>,
}

impl LeasedKey {
    /// One that is the first of its batch, and may be attempted at once.
    pub(super) const fn head(webhook: i64, sequence: i64) -> Self {
        Self {
            webhook,
            sequence,
            head: sequence,
            turn: None,
        }
    }
}

/// The deliveries that were leased, whole, webhook by webhook in this order. Of each webhook it is said whether its deliveries are
/// probes.
pub(super) async fn load(
    read: &mut Connection,
    leased: &[LeasedKey],
    webhooks: &[(i64, bool)],
    request: &LeaseRequest,
    keys: &EncryptionKeys,
) -> Result<Vec<LeasedDelivery>, StoreError> {
    let places: HashMap<i64, (usize, bool)> = webhooks
        .iter()
        .enumerate()
        .map(|(place, (ordinal, probe))| (*ordinal, (place, *probe)))
        .collect();
    let endpoints = load_endpoints(read, leased, request, keys).await?;
    let heads: HashMap<(i64, i64), (i64, Option<Timestamp>)> = leased
        .iter()
        .map(|each| ((each.webhook, each.sequence), (each.head, each.turn)))
        .collect();
    let keys = leased
        .iter()
        .map(|each| values![each.webhook, each.sequence]);
    let found = read
        .rows_over(
            bound_rows!(
                [webhook bigint, sequence bigint],
                "SELECT m.id, m.kind, m.created_at, m.webhook, m.sequence, d.retry_index, d.scheduled_at, d.lane,
                     CASE WHEN m.shared_body IS NULL THEN m.body ELSE m.body || b.rest END AS body
                 FROM v JOIN messages m ON m.webhook = v.webhook AND m.sequence = v.sequence
                 JOIN deliveries d ON d.webhook = v.webhook AND d.sequence = v.sequence
                 LEFT JOIN bodies b ON b.ordinal = m.shared_body"
            ),
            keys.collect(),
        )
        .await?;
    let corrupt = || StoreError::Corrupt {
        what: "messages.webhook",
    };
    let mut deliveries = found
        .iter()
        .map(|row| {
            let ordinal = row.integer("webhook")?;
            let (place, probe) = places.get(&ordinal).copied().ok_or_else(corrupt)?;
            let endpoint = endpoints.get(&ordinal).ok_or_else(corrupt)?;
            let sequence = row.integer("sequence")?;
            let head = heads.get(&(ordinal, sequence)).copied();
            let scheduled = row.optional_time("scheduled_at")?;
            let (head, turn) = head.unwrap_or((sequence, None));
            let delivery = DeliveryData {
                id: rows::message_id(row)?,
                sequence: unsigned(sequence, "messages.sequence")?,
                head: unsigned(head, "messages.sequence")?,
                kind: rows::kind(row)?,
                body: row.text("body")?,
                created: row.time("created_at")?,
                retry_index: row.count("retry_index")?,
                in_order: row.optional_text("lane")?.is_some(),
                probe,
                ahead_of: scheduled.filter(|at| *at > request.now),
                turn,
            };
            Ok((place, endpoint.leased(delivery, request)))
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    deliveries.sort_unstable_by_key(|(place, delivery)| (*place, delivery.lease.sequence));
    Ok(deliveries
        .into_iter()
        .map(|(_, delivery)| delivery)
        .collect())
}

async fn load_endpoints(
    read: &mut Connection,
    leased: &[LeasedKey],
    request: &LeaseRequest,
    keys: &EncryptionKeys,
) -> Result<HashMap<i64, EndpointData>, StoreError> {
    let ordinals: BTreeSet<i64> = leased.iter().map(|each| each.webhook).collect();
    let found = read
        .rows_over(
            bound_rows!(
                [webhook bigint],
                "SELECT w.ordinal, w.api_key, w.id, w.url, w.secret, w.previous_secrets, w.previous_secrets_until,
                     w.headers, w.gzip, w.batch_messages, w.batch_bytes, w.batch_wait_ms, w.delivery_options
                 FROM v JOIN webhooks w ON w.ordinal = v.webhook"
            ),
            ordinals.into_iter().map(|ordinal| values![ordinal]).collect(),
        )
        .await?;
    found
        .iter()
        .map(|row| {
            let data = EndpointData::of(row, request.now, keys)?;
            Ok((row.integer("ordinal")?, data))
        })
        .collect()
}
