//! Composes the operational messages: what becomes of an owner's other webhooks (pure).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sluice_store::{
    Breaker, Commitment, NewMessage, OperationKind, OperationRecipient, Timestamp, TroubledWebhook,
    UsedUpQuota, WebhookId,
};

use super::{
    lost::Lost,
    message_id::{MessageIdentity, message_id},
    payload,
    subscription_index::Subscriptions,
};
use crate::slots::Gap;

/// Milliseconds of a day: a quota that stays used up is told of once a day.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What is told, to whom, as of which slot.
struct Telling<'a> {
    recipient: &'a WebhookId,
    commitment: Commitment,
    slot: u64,
    now: Timestamp,
}

impl Telling<'_> {
    fn message(&self, identity: MessageIdentity<'_>, data: &Value) -> NewMessage {
        let suffix = payload::suffix(self.slot, self.commitment, data);
        NewMessage {
            id: message_id(self.recipient, self.commitment, identity),
            webhook: self.recipient.clone(),
            kind: identity.kind(),
            commitment: self.commitment,
            slot: self.slot,
            order_key: None,
            body: payload::template(identity.kind(), self.now, self.recipient, suffix),
        }
    }
}

/// What is wrong with a webhook, as far as `kinds` go.
#[must_use]
pub fn troubles(
    recipient: &WebhookId,
    kinds: &BTreeSet<OperationKind>,
    webhook: &TroubledWebhook,
    (slot, now): (u64, Timestamp),
) -> Vec<NewMessage> {
    let telling = Telling {
        recipient,
        commitment: Commitment::Confirmed,
        slot,
        now,
    };
    let id = webhook.id.as_str();
    let since = webhook.failing_since;
    let disabled = webhook.disabled_reason.as_ref().map(|reason| {
        let kind = OperationKind::EndpointDisabled;
        (
            kind,
            webhook.version,
            json!({ "webhook": id, "reason": reason }),
        )
    });
    let refused = webhook.refused.as_ref().map(|reason| {
        let (kind, revision) = (OperationKind::FilterRefused, webhook.matched_revision.0);
        let data = json!({ "webhook": id, "reason": reason, "digest": webhook.filter_digest });
        (kind, revision, data)
    });
    let failing = (webhook.breaker != Breaker::Closed).then(|| {
        let number = since.map_or(0, |since| u64::try_from(since.unix_millis()).unwrap_or(0));
        let since = since.map(|since| since.to_string());
        let data = json!({ "webhook": id, "since": since });
        (OperationKind::EndpointFailing, number, data)
    });
    let told = [disabled, refused, failing].into_iter().flatten();
    told.filter(|(kind, ..)| kinds.contains(kind))
        .map(|(kind, number, data)| {
            telling.message(MessageIdentity::Operation(kind, id, number), &data)
        })
        .collect()
}

/// That nothing is left of a quota.
#[must_use]
pub fn quota(used_up: &UsedUpQuota, (slot, now): (u64, Timestamp)) -> NewMessage {
    let UsedUpQuota {
        webhook,
        quota,
        used,
        limit,
    } = used_up;
    let telling = Telling {
        recipient: webhook,
        commitment: Commitment::Confirmed,
        slot,
        now,
    };
    let day = u64::try_from(now.unix_millis() / DAY_MILLIS).unwrap_or(0);
    let name = format!("{quota} {limit}");
    let identity = MessageIdentity::Operation(OperationKind::Quota, &name, day);
    let data = json!({ "quota": quota, "used": used, "limit": limit });
    telling.message(identity, &data)
}

/// That slots were not read for other webhooks at `commitment` which want events of the kinds that are `lost`.
#[must_use]
pub fn gaps(
    subscriptions: &Subscriptions,
    recipients: &[OperationRecipient],
    (commitment, gap, lost): (Commitment, Gap, &Lost),
    now: Timestamp,
) -> Vec<NewMessage> {
    let of_commitment = subscriptions.webhooks().iter();
    let of_commitment = of_commitment.filter(|webhook| webhook.commitment == commitment);
    let mut messages = Vec::new();
    for webhook in of_commitment {
        let Some(mut data) = payload::gap(gap, lost, webhook) else {
            continue;
        };
        let own = message_id(&webhook.id, commitment, MessageIdentity::Gap(gap));
        data["webhook"] = webhook.id.as_str().into();
        let told = recipients
            .iter()
            .filter(|recipient| recipient.subject == webhook.id);
        messages.extend(told.map(|recipient| {
            let telling = Telling {
                recipient: &recipient.webhook,
                commitment,
                slot: gap.last,
                now,
            };
            let identity = MessageIdentity::Operation(OperationKind::Gap, own.as_str(), gap.last);
            telling.message(identity, &data)
        }));
    }
    messages
}
