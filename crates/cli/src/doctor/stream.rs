//! Check of a Yellowstone server: that it streams, how far it is, how far back it replays, how far away it is, and what it takes.

use std::time::Duration;

use sluice_config::{GeyserConfig, GeyserEndpoint};
use sluice_geyser::{Body, Endpoint, Request, ServerInfo, Stream, StreamError};
use tokio::time::timeout;

use super::{report::Finding, stream_limits};

/// Time in which a slot must have come. Chains make two to five a second.
const FIRST_SLOT: Duration = Duration::from_secs(10);

/// Slots by which a stream, or another node, may be behind the node without a word: they were asked one after the other.
pub const BEHIND: u64 = 64;

/// Slots that a replay should reach back to, so that what was finalized last is in it.
const REPLAYED: u64 = 64;

/// Time of a slot. What comes from a server that is further away than this comes after the next slot has begun.
const SLOT: Duration = Duration::from_millis(400);

/// What was found of a server, each under its subject. `node_slot` is the slot of the RPC node.
pub async fn check(
    endpoint: &GeyserEndpoint,
    config: &GeyserConfig,
    node_slot: Option<u64>,
) -> Vec<(String, Finding)> {
    let endpoint = Endpoint {
        url: endpoint.url.clone(),
        x_token: endpoint.x_token.clone(),
    };
    let name = endpoint.name();
    let asking = async {
        let slot = first_slot(&endpoint).await?;
        Ok::<_, StreamError>((slot, ServerInfo::read(&endpoint).await?))
    };
    let stream = format!("stream {name}");
    match asking.await {
        Ok((slot, info)) => {
            let limits = stream_limits::check(&endpoint, config).await;
            let limits = limits.map(|finding| (format!("limits of stream {name}"), finding));
            let found = [
                (stream, judge(slot, node_slot, &info)),
                (
                    format!("latency of stream {name}"),
                    latency(info.round_trip),
                ),
            ];
            found.into_iter().chain(limits).collect()
        }
        Err(error) => vec![(stream, failure(&error))],
    }
}

fn failure(error: &StreamError) -> Finding {
    let remedy = match error {
        StreamError::Refused(_) => "correct the server's url and x-token in [[geyser.endpoints]]",
        _ => "start the server, or correct its url in [[geyser.endpoints]]",
    };
    Finding::broken(error.to_string(), remedy)
}

/// What the time of a call and its answer says.
fn latency(round_trip: Duration) -> Finding {
    let found = format!("answers in {} ms", round_trip.as_millis());
    if round_trip <= SLOT {
        return Finding::Well(found);
    }
    Finding::doubtful(
        format!("{found}, more than a slot"),
        "use a server nearer to this machine: quotes are older than the chain by that",
    )
}

/// The first slot that the stream names.
async fn first_slot(endpoint: &Endpoint) -> Result<u64, StreamError> {
    let request = Request {
        slots: Some("doctor".to_owned()),
        ..Request::default()
    };
    let mut stream = Stream::open(endpoint, request).await?;
    let waiting = async {
        loop {
            if let Body::Slot(slot) = stream.next().await?.body {
                return Ok(slot.slot);
            }
        }
    };
    let in_time = timeout(FIRST_SLOT, waiting).await;
    in_time.unwrap_or(Err(StreamError::Stalled(FIRST_SLOT)))
}

/// What a server's slot and words say.
fn judge(slot: u64, node_slot: Option<u64>, info: &ServerInfo) -> Finding {
    let behind = node_slot.unwrap_or(slot).saturating_sub(slot);
    if behind > BEHIND {
        return Finding::broken(
            format!("at slot {slot}, {behind} slots behind the RPC node"),
            "wait until it has caught up, and see that it is of the same cluster as chain.rpc-url",
        );
    }
    match info.first_available.map(|first| slot.saturating_sub(first)) {
        Some(replayed) if replayed >= REPLAYED => {
            Finding::Well(format!("slot {slot}, replays {replayed} slots"))
        }
        Some(replayed) => Finding::doubtful(
            format!("slot {slot}, replays {replayed} slots only"),
            "a young server has no more; else set its replay to some hundreds of slots: what a lost connection leaves out \
             is read by RPC",
        ),
        None => Finding::doubtful(
            format!("slot {slot}, and it does not say how far back it replays"),
            "without a replay, what a lost connection leaves out is read by RPC, and changes of accounts are lost",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(first_available: Option<u64>) -> ServerInfo {
        ServerInfo {
            version: None,
            first_available,
            round_trip: Duration::ZERO,
        }
    }

    #[test]
    fn a_server_is_near_that_answers_within_a_slot() {
        let near = latency(Duration::from_millis(12));
        assert_eq!(near, Finding::Well("answers in 12 ms".into()));
        let far = latency(SLOT + Duration::from_millis(1));
        assert!(matches!(far, Finding::Doubtful { .. }), "{far:?}");
    }

    #[test]
    fn a_server_is_well_that_is_in_time_and_replays() {
        let well = judge(1_000, Some(1_010), &info(Some(500)));
        assert_eq!(well, Finding::Well("slot 1000, replays 500 slots".into()));
    }

    #[test]
    fn a_server_behind_the_node_is_of_no_use_and_one_without_replay_of_less() {
        let late = judge(1_000, Some(1_065), &info(Some(500)));
        assert!(matches!(late, Finding::Broken { .. }), "{late:?}");
        for first in [None, Some(937)] {
            let short = judge(1_000, None, &info(first));
            assert!(matches!(short, Finding::Doubtful { .. }), "{short:?}");
        }
    }
}
