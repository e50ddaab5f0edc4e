//! IDL reader: reads by RPC the IDLs that watched programs publish, and keeps them in the store.
//!
//! A program of which an event is watched is read once a webhook names it, and again after a time that the configuration sets, since
//! programs are upgraded. Those whose IDL is built in or configured need none. Where the accounts cannot be read, what was read before
//! stays.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use service_kit::{CancellationToken, Clock};
use sluice_program_idl::{Schema, account};
use sluice_store::{ChainIdl, Commitment, Revision, Store, StoreError, Timestamp};
use solana_pubkey::Pubkey;
use tokio::{sync::watch, time::sleep};

use crate::{
    events::{idl::Idls, subscription_index::Subscriptions},
    rpc::{Node, NodeError},
};

/// Pause between two looks for programs to be read, wall time.
const TICK: Duration = Duration::from_secs(1);

/// How long nothing is asked for after the node or the database has failed, by the clock that says when a program is due.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// The task that reads them.
#[derive(Debug)]
pub struct IdlReader {
    /// Whom it asks.
    pub node: Node,
    /// Where they go.
    pub store: Store,
    /// The active webhooks.
    pub subscriptions: watch::Receiver<Arc<Subscriptions>>,
    /// Which programs need none.
    pub idls: watch::Receiver<Arc<Idls>>,
    /// How long what was read counts.
    pub refresh: Duration,
    /// Decides what is due.
    pub clock: Clock,
}

/// What it knows.
#[derive(Debug, Default)]
struct Known {
    /// When each program was read last; `None` before that was asked of the store.
    times: Option<HashMap<Pubkey, Timestamp>>,
    /// Programs of which events are watched and that need to be read, with the webhooks' revision: to find them, all addresses are
    /// looked at.
    watched: Option<(Revision, HashSet<Pubkey>)>,
}

/// Why a program was not read.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IdlReader {
    /// Reads what is due until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut known = Known::default();
        let mut not_before = Timestamp::from(self.clock.now());
        while !shutdown.is_cancelled() {
            let now = Timestamp::from(self.clock.now());
            if not_before <= now {
                let read = tokio::select! {
                    () = shutdown.cancelled() => return,
                    read = self.read_due(&mut known, now) => read,
                };
                if let Err(error) = read {
                    tracing::warn!(%error, "the IDLs that programs publish could not be read");
                    not_before = now.after(PAUSE_AFTER_FAILURE);
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(TICK) => {}
            }
        }
    }

    /// Reads the programs that are due.
    async fn read_due(&self, known: &mut Known, now: Timestamp) -> Result<(), Fault> {
        let times = match &mut known.times {
            Some(times) => times,
            None => {
                let times = self.store.chain_idl_times().await?;
                known.times.insert(times.into_iter().collect())
            }
        };
        let watched = self.watched(&mut known.watched);
        let stale = now.before(self.refresh);
        let is_due = |program: &&Pubkey| times.get(program).is_none_or(|read| *read <= stale);
        let due: Vec<Pubkey> = watched.iter().filter(is_due).copied().collect();
        for program in due {
            let text = self.published(&program).await?;
            let idl = ChainIdl { text, read: now };
            self.store.keep_chain_idl(&program, &idl).await?;
            times.insert(program, now);
        }
        // What was watched lately may be watched again.
        let is_over =
            |(program, read): &(&Pubkey, &Timestamp)| !watched.contains(program) && **read <= stale;
        let over: Vec<Pubkey> = times
            .iter()
            .filter(is_over)
            .map(|(each, _)| *each)
            .collect();
        for program in over {
            self.store.forget_chain_idl(&program).await?;
            times.remove(&program);
        }
        Ok(())
    }

    /// The programs of which events are watched and whose IDL is neither built in nor configured.
    fn watched<'a>(
        &self,
        known: &'a mut Option<(Revision, HashSet<Pubkey>)>,
    ) -> &'a HashSet<Pubkey> {
        let subscriptions = Arc::clone(&self.subscriptions.borrow());
        let revision = subscriptions.revision();
        if known.as_ref().is_none_or(|(of, _)| *of != revision) {
            let idls = Arc::clone(&self.idls.borrow());
            let programs = subscriptions.event_programs();
            let programs = programs.filter(|program| !idls.is_fixed(program));
            *known = Some((revision, programs.copied().collect()));
        }
        &known.get_or_insert_default().1
    }

    /// The IDL that a program publishes, if it does and it is understood.
    async fn published(&self, program: &Pubkey) -> Result<Option<String>, NodeError> {
        let addresses = account::addresses(program);
        let accounts = self.node.accounts(&addresses, Commitment::Confirmed, 0);
        for account in accounts.await? {
            if account.lamports == 0 {
                continue;
            }
            let place = account.pubkey;
            let text = match account::text(program, &account.owner, &account.data) {
                Ok(text) => text,
                Err(error) => {
                    tracing::info!(%program, %place, %error, "an IDL account is not understood");
                    continue;
                }
            };
            match Schema::parse(&text) {
                Ok((described, _)) if described == *program => return Ok(Some(text)),
                Ok((described, _)) => {
                    tracing::info!(%program, %place, %described, "a published IDL is of another program");
                }
                Err(error) => {
                    tracing::info!(%program, %place, %error, "a published IDL is not understood");
                }
            }
        }
        Ok(None)
    }
}
