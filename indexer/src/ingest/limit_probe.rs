//! Limit probe: finds how many keys the stream's servers take in one request, on streams of its own.
//!
//! A server says its limit when it refuses what is over; where its words name none, halves are tried. The addresses that are
//! asked for are unused, so nothing comes of them.

use std::time::Duration;

use sluice_geyser::{
    AccountFilter, Endpoint, Request, RequestLimits, Servers, Stream, StreamError,
    TransactionFilter, limits::MAX_STRANDS,
};
use sluice_store::AddressLimits;
use solana_pubkey::Pubkey;
use tokio::{task::JoinSet, time::timeout};

use super::filter_probe::refusal;

/// Time for all probes of a server: one that does not answer keeps no session waiting for longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time for the other servers once one has answered, which may be streamed from meanwhile. One that takes less, and does not say so
/// in time, refuses the request, and is asked again while the first one is streamed from.
const OTHERS_PATIENCE: Duration = Duration::from_secs(10);

/// Name of the filters of a probe.
const FILTER: &str = "limits";

/// A kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pubkeys,
    Owners,
    AccountInclude,
}

/// Which account filters are tried beside one by address.
#[derive(Clone, Copy)]
struct Filters {
    owners: bool,
    closed: bool,
}

/// Finds what every server takes: of their limits the lowest. `None` when no server has answered.
pub(super) async fn find(servers: &Servers) -> Option<RequestLimits> {
    let probes = servers.endpoints().cloned();
    let probes = probes.map(|endpoint| async move {
        let limits = of_server(&endpoint).await?;
        tracing::info!(
            pubkeys = limits.pubkeys,
            owners = limits.owners,
            account_include = limits.account_include,
            account_filters = limits.account_filters,
            transaction_filters = limits.transaction_filters,
            keys = limits.keys,
            keyless = limits.keyless,
            "a server's limits of one request are found"
        );
        Ok::<_, StreamError>(limits)
    });
    lowest_of(probes, OTHERS_PATIENCE).await
}

async fn lowest_of<P>(
    probes: impl Iterator<Item = P>,
    others_patience: Duration,
) -> Option<RequestLimits>
where
    P: Future<Output = Result<RequestLimits, StreamError>> + Send + 'static,
{
    let mut probes: JoinSet<_> = probes.map(|probe| timeout(PATIENCE, probe)).collect();
    let mut found: Option<RequestLimits> = None;
    loop {
        let patience = if found.is_some() {
            others_patience
        } else {
            Duration::MAX
        };
        match timeout(patience, probes.join_next()).await {
            Ok(None) => return found,
            Ok(Some(Ok(Ok(Ok(limits))))) => {
                found = Some(found.map_or(limits, |found| lowest(found, limits)));
            }
            Ok(Some(Ok(Ok(Err(error))))) => {
                tracing::warn!(%error, "a server's limits could not be found");
            }
            Ok(Some(Ok(Err(_)) | Err(_))) => {
                tracing::warn!("a server's limits could not be found in time");
            }
            Err(_) => {
                tracing::warn!("a server's limits are not waited for, since another has answered");
                return found;
            }
        }
    }
}

/// How many addresses the strands of one stream take together, and whether they show closes.
pub(super) fn address_limits(limits: RequestLimits) -> AddressLimits {
    let all = |limit: Option<usize>| {
        limit.map(|limit| u64::try_from(limit.saturating_mul(MAX_STRANDS)).unwrap_or(u64::MAX))
    };
    AddressLimits {
        accounts: all(limits.pubkeys),
        owners: all(limits.owners),
        mentioned: all(limits.account_include),
        closes_unseen: !limits.keyless,
    }
}

fn lowest(one: RequestLimits, other: RequestLimits) -> RequestLimits {
    let least = |one: Option<usize>, other: Option<usize>| one.into_iter().chain(other).min();
    RequestLimits {
        pubkeys: least(one.pubkeys, other.pubkeys),
        owners: least(one.owners, other.owners),
        account_include: least(one.account_include, other.account_include),
        keys: one.keys.min(other.keys),
        account_filters: least(one.account_filters, other.account_filters),
        transaction_filters: least(one.transaction_filters, other.transaction_filters),
        keyless: one.keyless && other.keyless,
    }
}

/// What one server takes. It waits for as long as the server does.
///
/// # Errors
/// When a stream cannot be opened, or ends for another reason than what was asked for.
pub async fn of_server(endpoint: &Endpoint) -> Result<RequestLimits, StreamError> {
    // What is refused must be the keys, and not that nothing is asked for but slots.
    try_keys(endpoint, Kind::Pubkeys, 0).await?;
    let mut limits = RequestLimits::default();
    limits.pubkeys = most(endpoint, Kind::Pubkeys, limits.keys).await?;
    limits.owners = most(endpoint, Kind::Owners, limits.keys).await?;
    limits.account_include = most(endpoint, Kind::AccountInclude, limits.keys).await?;
    (limits.account_filters, limits.keyless) = account_filters(endpoint).await?;
    let takes_both = takes(endpoint, two_of_transactions()).await?;
    limits.transaction_filters = (!takes_both).then_some(1);
    Ok(limits)
}

/// How many account filters a server takes in a request, `None` where it takes all that subscriptions may have at once; and whether
/// it takes one of closed accounts, which names no key.
async fn account_filters(endpoint: &Endpoint) -> Result<(Option<usize>, bool), StreamError> {
    let all = Filters {
        owners: true,
        closed: true,
    };
    if takes(endpoint, of_accounts(all)).await? {
        return Ok((None, true));
    }
    let closed = Filters {
        owners: false,
        ..all
    };
    if takes(endpoint, of_accounts(closed)).await? {
        return Ok((Some(2), true));
    }
    tracing::warn!(
        "a server takes no filter of closed accounts: webhooks on programs are not sent every account that is closed, as their \
         status says"
    );
    let owners = Filters {
        closed: false,
        ..all
    };
    let takes_both = takes(endpoint, of_accounts(owners)).await?;
    Ok(((!takes_both).then_some(1), false))
}

/// Whether a server serves a request: its first update shows that it does.
async fn takes(endpoint: &Endpoint, request: Request) -> Result<bool, StreamError> {
    let mut stream = Stream::open(endpoint, request).await?;
    match stream.next().await {
        Ok(_) => Ok(true),
        Err(error) if refusal(&error).is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

/// An account filter by address, one by owner, and one of closed accounts of any owner.
fn of_accounts(Filters { owners, closed }: Filters) -> Request {
    let by_owner = AccountFilter {
        owners: vec![key(1)],
        ..AccountFilter::default()
    };
    let of_closed = AccountFilter {
        lamports: Some(0),
        ..AccountFilter::default()
    };
    let mut request = request(Kind::Pubkeys, 1);
    let chosen = [("owners", owners, by_owner), ("closed", closed, of_closed)];
    let chosen = chosen.into_iter().filter(|(_, is_tried, _)| *is_tried);
    request
        .accounts
        .extend(chosen.map(|(name, _, filter)| (name.to_owned(), filter)));
    request
}

/// A filter of transactions by address, and one by owners of token accounts.
fn two_of_transactions() -> Request {
    let mut two = request(Kind::AccountInclude, 1);
    let token_owners = TransactionFilter {
        account_include: vec![key(1)],
        token_owners: true,
        ..TransactionFilter::default()
    };
    two.transactions
        .insert("token_owners".to_owned(), token_owners);
    two
}

/// How many keys of a kind a server takes; `None` for as many as fit into a request.
async fn most(endpoint: &Endpoint, kind: Kind, keys: usize) -> Result<Option<usize>, StreamError> {
    let refused = match try_keys(endpoint, kind, keys).await {
        Ok(()) => return Ok(None),
        Err(error) => error,
    };
    if let Some(limit) = said(&refused).filter(|limit| *limit < keys)
        && try_keys(endpoint, kind, limit).await.is_ok()
    {
        return Ok(Some(limit));
    }
    let (mut taken, mut too_many) = (0, keys);
    while taken + 1 < too_many {
        let middle = taken.midpoint(too_many);
        match try_keys(endpoint, kind, middle).await {
            Ok(()) => taken = middle,
            // A server that reads less ends the stream without a word.
            Err(error) if refusal(&error).is_some() || is_an_end(&error) => too_many = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(Some(taken))
}

const fn is_an_end(error: &StreamError) -> bool {
    matches!(
        error,
        StreamError::Closed | StreamError::TooLarge(_) | StreamError::Other(_)
    )
}

/// The limit that a server names.
fn said(error: &StreamError) -> Option<usize> {
    let words = refusal(error)?;
    let (_, after) = words.split_once("only ")?;
    let (number, _) = after.split_once(" allowed")?;
    number.parse().ok()
}

/// Opens a stream with so many keys, and waits for its first update, which shows that the request is served.
async fn try_keys(endpoint: &Endpoint, kind: Kind, count: usize) -> Result<(), StreamError> {
    let mut stream = Stream::open(endpoint, request(kind, count)).await?;
    stream.next().await.map(|_| ())
}

fn request(kind: Kind, count: usize) -> Request {
    let mut request = Request {
        slots: Some(FILTER.to_owned()),
        ..Request::default()
    };
    let keys: Vec<Pubkey> = (0..count).map(key).collect();
    let name = FILTER.to_owned();
    match kind {
        _ if keys.is_empty() => {}
        Kind::Pubkeys => {
            let filter = AccountFilter {
                pubkeys: keys,
                ..AccountFilter::default()
            };
            request.accounts.insert(name, filter);
        }
        Kind::Owners => {
            let filter = AccountFilter {
                owners: keys,
                ..AccountFilter::default()
            };
            request.accounts.insert(name, filter);
        }
        Kind::AccountInclude => {
            let filter = TransactionFilter {
                account_include: keys,
                ..TransactionFilter::default()
            };
            request.transactions.insert(name, filter);
        }
    }
    request
}

/// An address that is unused, and long in base 58.
fn key(number: usize) -> Pubkey {
    let mut bytes = [0xF5; 32];
    bytes[24..].copy_from_slice(&(number as u64).to_be_bytes());
    Pubkey::new_from_array(bytes)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    type Probe = Pin<Box<dyn Future<Output = Result<RequestLimits, StreamError>> + Send>>;

    #[test]
    fn a_limit_is_read_from_the_servers_words() {
        let refused = |words: &str| StreamError::Refused(words.to_owned());
        let words = "InvalidArgument: failed to create filter: Max amount of Pubkeys reached, only 50 allowed";
        assert_eq!(said(&refused(words)), Some(50));
        assert_eq!(said(&refused("InvalidArgument: too many keys")), None);
        assert_eq!(said(&StreamError::Closed), None);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_waited_for_once_another_has() {
        let answered = async {
            Ok(RequestLimits {
                pubkeys: Some(5),
                ..RequestLimits::default()
            })
        };
        let silent = std::future::pending();
        let probes: [Probe; 2] = [Box::pin(silent), Box::pin(answered)];
        let found = lowest_of(probes.into_iter(), Duration::from_millis(1));
        // Less than the silent one has, and longer than any machine takes.
        let found = timeout(PATIENCE / 2, found)
            .await
            .expect("it was waited for");
        assert_eq!(found.and_then(|limits| limits.pubkeys), Some(5));
    }

    #[test]
    fn of_several_servers_the_lowest_limits_count() {
        let one = RequestLimits {
            pubkeys: Some(5),
            owners: None,
            ..RequestLimits::default()
        };
        let other = RequestLimits {
            pubkeys: Some(7),
            owners: Some(3),
            ..RequestLimits::default()
        };
        let found = lowest(one, other);
        assert_eq!(
            (found.pubkeys, found.owners, found.account_include),
            (Some(5), Some(3), None)
        );
        let all = address_limits(found);
        assert_eq!(all.accounts, Some(5 * MAX_STRANDS as u64));
        assert_eq!(all.mentioned, None);
    }
}
