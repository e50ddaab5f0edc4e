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
    // While it is half open, the last attempt was accepted.
    let failing = (webhook.breaker == Breaker::Open).then(|| {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sluice_store::{EndpointState, MessageId, Observation, Revision};

    use super::*;
    use crate::delivery::breaker::{FAILURES_TO_OPEN, on_attempt};

    const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

    /// What is told of an endpoint in this state.
    fn told(state: EndpointState) -> Vec<MessageId> {
        let webhook = TroubledWebhook {
            id: WebhookId::from_random([1; 16]),
            version: 1,
            disabled_reason: None,
            refused: None,
            matched_revision: Revision(1),
            filter_digest: String::new(),
            breaker: state.breaker,
            failing_since: state.failing_since,
        };
        let recipient = WebhookId::from_random([2; 16]);
        let kinds = OperationKind::ALL.into_iter().collect();
        let messages = troubles(&recipient, &kinds, &webhook, (7, NOW));
        messages.into_iter().map(|message| message.id).collect()
    }

    /// The state after another attempt, which took no time.
    fn next(state: EndpointState, observation: Observation, seconds: u64) -> EndpointState {
        let at = NOW.after(Duration::from_secs(seconds));
        on_attempt(state, observation, (at, at), 16, false, 0)
    }

    fn opened() -> EndpointState {
        (0..FAILURES_TO_OPEN).fold(EndpointState::default(), |state, _| {
            assert_eq!(told(state), [], "its messages flow");
            next(state, Observation::Failed, 0)
        })
    }

    #[test]
    fn an_endpoint_is_told_as_failing_once_however_often_it_is_tried_in_vain() {
        let mut state = opened();
        let first = told(state);
        assert_eq!(first.len(), 1);
        for seconds in [1000, 2000, 3000] {
            state = next(state, Observation::Failed, seconds);
            assert_eq!(told(state), first);
        }
    }

    #[test]
    fn an_endpoint_that_accepts_is_not_told_as_failing_until_it_fails_anew() {
        let before = opened();
        let tried = next(before, Observation::Accepted, 1000);
        assert_eq!((tried.breaker, told(tried)), (Breaker::HalfOpen, vec![]));
        let well = next(tried, Observation::Accepted, 1001);
        assert_eq!((well.breaker, told(well)), (Breaker::Closed, vec![]));
        let anew = next(tried, Observation::Failed, 1001);
        let again = told(anew);
        assert_eq!(again.len(), 1);
        assert_ne!(again, told(before), "since when is another time");
    }
}
