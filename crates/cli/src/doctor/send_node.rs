//! Check of a node that transactions are sent to besides chain.rpc-url: that it answers, is of the cluster, and in time.

use std::time::Duration;

use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::client_error::{Error as ClientError, ErrorKind};
use url::Url;

use super::{report::Finding, stream::BEHIND_SLOTS};

/// What is to be done about one that does not answer.
const REMEDY: &str = "start the node, or correct its URL in chain.send-urls, or leave it out";

/// What a node says of itself.
enum Answer {
    /// Its cluster's first block, and its slot.
    Told(Hash, u64),
    /// It takes calls, but not these.
    Refused(anyhow::Error),
    /// It cannot be reached.
    Away(anyhow::Error),
}

/// The name of the node at `url`, and what was found. `genesis` and `slot` are those of the node at chain.rpc-url.
pub async fn check(
    url: &Url,
    deadline: Duration,
    genesis: Option<Hash>,
    slot: Option<u64>,
) -> (String, Finding) {
    // Without what follows the host, which may hold a key.
    let name = url.origin().ascii_serialization();
    (name, judge(&ask(url, deadline).await, genesis, slot))
}

async fn ask(url: &Url, deadline: Duration) -> Answer {
    let confirmed = CommitmentConfig::confirmed();
    let rpc = RpcClient::new_with_timeout_and_commitment(url.to_string(), deadline, confirmed);
    let asking = async { Ok((rpc.get_genesis_hash().await?, rpc.get_slot().await?)) };
    match asking.await {
        Ok((genesis, slot)) => Answer::Told(genesis, slot),
        Err(error) => failure(error),
    }
}

/// The failure of a call, without the URL.
fn failure(error: ClientError) -> Answer {
    match *error.kind {
        ErrorKind::Reqwest(error) => {
            let error = anyhow::Error::new(error.without_url());
            Answer::Away(error.context("it does not answer"))
        }
        ErrorKind::RpcError(error) => Answer::Refused(error.into()),
        kind => Answer::Away(kind.into()),
    }
}

fn judge(answer: &Answer, genesis: Option<Hash>, slot: Option<u64>) -> Finding {
    let (own, at) = match answer {
        Answer::Told(own, at) => (own, *at),
        Answer::Refused(error) => {
            return Finding::doubtful(
                format!("it does not say of which cluster it is: {error:#}"),
                "a service that does nothing but send says no more: see with its provider that it is of the cluster of \
                 chain.rpc-url",
            );
        }
        Answer::Away(error) => return Finding::failed(error, REMEDY),
    };
    if genesis.is_some_and(|genesis| genesis != *own) {
        return Finding::broken(
            "it is of another cluster than chain.rpc-url",
            "correct its URL in chain.send-urls, or leave it out: no transaction that it is sent can land",
        );
    }
    let behind = slot.unwrap_or(at).saturating_sub(at);
    if behind > BEHIND_SLOTS {
        return Finding::doubtful(
            format!("at slot {at}, {behind} slots behind the node at chain.rpc-url"),
            "wait until it has caught up, or use another node: it sends to the leaders of slots that are over",
        );
    }
    Finding::Well(format!("slot {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(genesis: u8, slot: u64) -> Answer {
        Answer::Told(Hash::new_from_array([genesis; 32]), slot)
    }

    #[test]
    fn a_node_is_well_that_is_of_the_cluster_and_in_time() {
        let genesis = Some(Hash::new_from_array([1; 32]));
        let well = Finding::Well("slot 936".into());
        assert_eq!(judge(&told(1, 936), genesis, Some(1_000)), well);
        assert_eq!(judge(&told(1, 936), None, None), well);
        let late = judge(&told(1, 935), genesis, Some(1_000));
        assert!(matches!(late, Finding::Doubtful { .. }), "{late:?}");
        let foreign = judge(&told(2, 1_000), genesis, Some(1_000));
        assert!(matches!(foreign, Finding::Broken { .. }), "{foreign:?}");
    }
}
