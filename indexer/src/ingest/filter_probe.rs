//! Filter probe: finds the webhooks whose filters the server refuses, on streams of its own.
//!
//! One address that a server rejects ends the stream that asks for it, and every webhook shares the live
//! one. So a filter that grew is tried on another stream first. When it is refused, halves of the new webhooks are tried
//! beside those that are served, until the ones that cannot be served are left ([`Bisection`], pure).

use std::{collections::HashSet, pin::Pin, sync::Arc, time::Duration};

use service_kit::Backoff;
use sluice_geyser::{Endpoint, Request, RequestLimits, Servers, Stream, StreamError};
use sluice_store::WebhookId;
use solana_pubkey::Pubkey;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::subscription::request;
use crate::events::subscription_index::Subscriptions;

/// Time for the answers of other servers once one has accepted a request: several slots.
const OTHERS_PATIENCE: Duration = Duration::from_secs(2);

/// Time for the first update of a trial: many slots. Before a session nothing else is streamed from.
const TRIAL_PATIENCE: Duration = Duration::from_secs(10);

/// Begin of the words with which a server refuses a filter.
const INVALID: &str = "InvalidArgument";

/// A webhook whose filter is refused, and the words of the server.
pub(super) type Refusal = (WebhookId, String);

/// What a server serves.
#[derive(Debug)]
pub(super) struct Probed {
    /// The webhooks that it serves.
    pub(super) accepted: Arc<Subscriptions>,
    /// Those that it does not.
    pub(super) refused: Vec<Refusal>,
    /// Programs whose accounts it shows to those that it serves, and whose transactions it refuses.
    pub(super) without_takings: HashSet<Pubkey>,
}

/// The search for the webhooks that are refused.
#[derive(Debug)]
struct Bisection {
    accepted: HashSet<WebhookId>,
    groups: Vec<Vec<WebhookId>>,
    refused: Vec<Refusal>,
}

impl Bisection {
    fn new(accepted: HashSet<WebhookId>, new: Vec<WebhookId>) -> Self {
        Self {
            accepted,
            groups: vec![new],
            refused: Vec::new(),
        }
    }

    /// The webhooks to be tried next, the accepted ones included; `None` when all are known.
    fn next(&mut self) -> Option<HashSet<WebhookId>> {
        while self.groups.last().is_some_and(Vec::is_empty) {
            self.groups.pop();
        }
        let group = self.groups.last()?;
        Some(self.accepted.iter().chain(group).cloned().collect())
    }

    /// The webhook that is tried, where it is one alone.
    fn lone(&self) -> Option<&WebhookId> {
        match self.groups.last().map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    fn accept(&mut self) {
        self.accepted.extend(self.groups.pop().unwrap_or_default());
    }

    fn refuse(&mut self, words: &str) {
        let Some(mut group) = self.groups.pop() else {
            return;
        };
        if group.len() == 1 {
            let refused = group.into_iter().map(|webhook| (webhook, words.to_owned()));
            self.refused.extend(refused);
            return;
        }
        let second = group.split_off(group.len() / 2);
        self.groups.extend([second, group]);
    }
}

/// What a probe is made with.
#[derive(Debug, Clone)]
pub(super) struct Prober {
    /// The stream's servers.
    pub(super) servers: Servers,
    /// What they take in one request.
    pub(super) limits: RequestLimits,
}

/// Finds which of `wanted` every server serves: one that refused the filter would be lost to the others' webhooks too. Those that are in `served` as they are now are known to be.
///
/// # Errors
/// Why the server could not be asked.
pub(super) async fn probe(
    prober: &Prober,
    wanted: Arc<Subscriptions>,
    served: Arc<Subscriptions>,
) -> Result<Probed, StreamError> {
    let new = wanted.changed_since(&served);
    let new: Vec<_> = new.webhooks().iter().map(|each| each.id.clone()).collect();
    let of_new: HashSet<_> = new.iter().collect();
    let ids = wanted.webhooks().iter().map(|each| &each.id);
    let known: HashSet<_> = ids.filter(|id| !of_new.contains(id)).cloned().collect();
    let mut accepted = prober
        .limits
        .divide(&request(&wanted.among(&known), None), &[])?;
    let mut bisection = Bisection::new(known, new);
    let (mut without_takings, mut left_out) = (HashSet::new(), HashSet::new());
    while let Some(tried) = bisection.next() {
        let left_out_now = without_takings.union(&left_out).copied().collect();
        let tried = wanted.among(&tried).without_takings_of(&left_out_now);
        let refused = prober.try_all(request(&tried, None), &mut accepted).await?;
        // A webhook that does not ask for transactions is not refused because of them.
        let is_new = refused.is_some() && left_out.is_empty();
        let alone = bisection.lone().filter(|_| is_new);
        left_out = alone.map_or_else(HashSet::new, |webhook| wanted.takers_of(webhook));
        if !left_out.is_subset(&without_takings) {
            continue;
        }
        left_out.clear();
        match refused {
            None => {
                without_takings = left_out_now;
                bisection.accept();
            }
            Some(words) if bisection.accepted.is_empty() && bisection.refused.is_empty() => {
                // Should even this be refused, no webhook is to blame.
                let nothing = request(&Subscriptions::default(), None);
                if try_request(&prober.servers, nothing).await?.is_some() {
                    return Err(StreamError::Refused(words));
                }
                bisection.refuse(&words);
            }
            Some(words) => bisection.refuse(&words),
        }
    }
    let accepted = if bisection.refused.is_empty() && without_takings.is_empty() {
        wanted
    } else {
        let accepted = wanted.among(&bisection.accepted);
        Arc::new(accepted.without_takings_of(&without_takings))
    };
    Ok(Probed {
        accepted,
        refused: bisection.refused,
        without_takings,
    })
}

impl Prober {
    /// The words of a server that refuses a request, which may be divided; where none does, its shares are what is `accepted`.
    async fn try_all(
        &self,
        request: Request,
        accepted: &mut Vec<Request>,
    ) -> Result<Option<String>, StreamError> {
        let shares = match self.limits.divide(&request, accepted) {
            Err(error) => return Ok(Some(error.to_string())),
            Ok(shares) => shares,
        };
        let refused = self.refused_of(&shares, accepted).await?;
        if refused.is_none() {
            *accepted = shares;
        }
        Ok(refused)
    }

    /// The words of a server that refuses one of the shares of a request. Those that are `accepted` need not be tried.
    async fn refused_of(
        &self,
        shares: &[Request],
        accepted: &[Request],
    ) -> Result<Option<String>, StreamError> {
        let new = shares.iter().filter(|share| !accepted.contains(share));
        // Where all are known one is tried all the same: the server may not be there.
        let known = shares
            .iter()
            .take(usize::from(new.clone().next().is_none()));
        for share in new.chain(known) {
            let refused = try_request(&self.servers, share.clone()).await?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }
}

/// Whether the end of a stream means that its request is refused, in which words.
pub(super) fn refusal(error: &StreamError) -> Option<String> {
    match error {
        // Others are about credentials, not about what is asked for.
        StreamError::Refused(words) if words.starts_with(INVALID) => Some(words.clone()),
        StreamError::TooManyKeys { .. } => Some(error.to_string()),
        _ => None,
    }
}

/// A probe under way, tried again until the server answers.
#[derive(Default)]
pub(super) struct Probing(Option<Pin<Box<dyn Future<Output = Tried> + Send>>>);

/// What was tried, and what was found.
type Tried = (Arc<Subscriptions>, Probed);

impl Probing {
    /// Begins a probe of `wanted` unless one is under way. `served` are known to be accepted.
    pub(super) fn begin(
        &mut self,
        prober: &Prober,
        wanted: &Arc<Subscriptions>,
        served: &Arc<Subscriptions>,
    ) {
        if self.0.is_some() {
            return;
        }
        let (prober, wanted, served) = (prober.clone(), Arc::clone(wanted), Arc::clone(served));
        self.0 = Some(Box::pin(async move {
            let mut pauses = Backoff::new();
            loop {
                match probe(&prober, Arc::clone(&wanted), Arc::clone(&served)).await {
                    Ok(probed) => return (wanted, probed),
                    Err(error) => tracing::warn!(%error, "a new filter could not be tried"),
                }
                sleep(pauses.next_pause(rand::random())).await;
            }
        }));
    }

    /// Waits for the end of the probe under way: what was tried, and what was found. For ever while there is none.
    /// Cancel-safe.
    pub(super) async fn ended(&mut self) -> Tried {
        let Some(probing) = &mut self.0 else {
            return std::future::pending().await;
        };
        let found = probing.await;
        self.0 = None;
        found
    }
}

/// Tries a request at every server. The words of one that refuses it. What those that do not answer would say is not waited for
/// once another one has accepted.
async fn try_request(servers: &Servers, request: Request) -> Result<Option<String>, StreamError> {
    let mut trials = JoinSet::new();
    for endpoint in servers.endpoints() {
        trials.spawn(try_at(endpoint.clone(), request.clone()));
    }
    let (mut accepted, mut failure) = (false, StreamError::Closed);
    loop {
        let patience = if accepted {
            OTHERS_PATIENCE
        } else {
            Duration::MAX
        };
        match timeout(patience, trials.join_next()).await {
            Ok(Some(Ok(Ok(None)))) => accepted = true,
            Ok(Some(Ok(Ok(refused)))) => return Ok(refused),
            Ok(Some(Ok(Err(error)))) => failure = error,
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    if accepted { Ok(None) } else { Err(failure) }
}

/// Opens a stream, and waits for its first update, which shows that the request is served. The words of the server if it is
/// refused.
async fn try_at(endpoint: Endpoint, request: Request) -> Result<Option<String>, StreamError> {
    let tried = async { Stream::open(&endpoint, request).await?.next().await };
    match timeout(TRIAL_PATIENCE, tried).await {
        Ok(Ok(_)) => Ok(None),
        Ok(Err(error)) => refusal(&error).map(Some).ok_or(error),
        Err(_) => Err(StreamError::Stalled(TRIAL_PATIENCE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> WebhookId {
        WebhookId::from_random([number; 16])
    }

    /// Which of `new` are refused by a server that rejects `bad` and takes no more than `most`, and after how many tries.
    fn search(new: u8, bad: &[u8], most: usize) -> (Vec<WebhookId>, u32) {
        let mut bisection = Bisection::new(HashSet::from([id(200)]), (0..new).map(id).collect());
        let mut tries = 0;
        while let Some(tried) = bisection.next() {
            tries += 1;
            if tried.len() > most || bad.iter().any(|bad| tried.contains(&id(*bad))) {
                bisection.refuse("no");
            } else {
                bisection.accept();
            }
        }
        assert_eq!(
            bisection.accepted.len() + bisection.refused.len(),
            usize::from(new) + 1
        );
        let refused = bisection.refused.into_iter().map(|(id, _)| id);
        (refused.collect(), tries)
    }

    #[test]
    fn what_is_refused_is_found_and_nothing_else() {
        assert_eq!(search(0, &[], 9), (vec![], 0));
        assert_eq!(search(5, &[], 9), (vec![], 1));
        assert_eq!(search(1, &[0], 9), (vec![id(0)], 1));
        let (refused, tries) = search(64, &[7, 40], 100);
        assert_eq!(refused, [id(7), id(40)]);
        assert!(tries <= 4 * 6 + 1, "{tries}");
    }

    #[test]
    fn as_many_are_served_as_the_server_takes() {
        let (refused, _) = search(5, &[], 4);
        assert_eq!(refused, [id(3), id(4)]);
    }

    #[test]
    fn only_words_about_what_is_asked_for_are_a_refusal() {
        assert_eq!(refusal(&StreamError::Closed), None);
        let words = "InvalidArgument: account_reject";
        let refused = StreamError::Refused(words.to_owned());
        assert_eq!(refusal(&refused).as_deref(), Some(words));
        let credentials = StreamError::Refused("Unauthenticated: who are you".to_owned());
        assert_eq!(refusal(&credentials), None);
        let many = StreamError::TooManyKeys { keys: 5_000_000 };
        assert!(refusal(&many).is_some_and(|words| words.contains("5000000")));
    }
}
