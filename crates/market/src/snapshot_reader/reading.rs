//! Reading: makes all calls of one read, repeats those that fail, and reports how far it is.

use std::{collections::HashSet, future::Future, mem, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use solana_pubkey::Pubkey;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use crate::{
    account_snapshot::AccountSnapshot, decoded_account::DecodedAccount, dependencies::dependencies,
};

use super::{
    caller::Caller,
    error::SnapshotError,
    jobs::{CallTarget, Job, Jobs, Next},
    pace::Pace,
    part::Part,
    progress::Progress,
};

/// Most accounts that nodes return from one `getMultipleAccounts`.
pub(super) const MAX_ACCOUNTS_PER_CALL: usize = 100;

/// Pause between two updates of the progress, in which only bytes may have come.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// A call under way, and its outcome.
type Outcome = (Job, Result<AccountSnapshot, SnapshotError>);

/// One read: of everything, or of some accounts.
pub(super) struct Reading<'a> {
    caller: &'a Caller,
    min_slot: u64,
    snapshots: &'a mpsc::Sender<AccountSnapshot>,
    reporting: Option<&'a watch::Sender<Progress>>,
    jobs: Jobs,
    pace: Pace,
    /// Calls for pools that are not answered yet.
    listing: usize,
    /// Accounts that were asked for, or will be.
    known: HashSet<Pubkey>,
    /// Those of them for which there is no call yet.
    collected: Vec<Pubkey>,
    progress: Progress,
    begun: Instant,
    succeeded: Instant,
    shown: service_kit::Progress,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        caller: &'a Caller,
        min_slot: u64,
        snapshots: &'a mpsc::Sender<AccountSnapshot>,
    ) -> Self {
        let now = Instant::now();
        Self {
            caller,
            min_slot,
            snapshots,
            reporting: None,
            jobs: Jobs::default(),
            pace: Pace::new(caller.limits().parallel_calls),
            listing: 0,
            known: HashSet::new(),
            collected: Vec::new(),
            progress: Progress::default(),
            begun: now,
            succeeded: now,
            shown: service_kit::Progress::default(),
        }
    }

    /// Reads all pools, all their dependencies and the clock, and reports how far it is.
    pub(super) async fn everything(
        mut self,
        reporting: &'a watch::Sender<Progress>,
    ) -> Result<(), SnapshotError> {
        self.reporting = Some(reporting);
        self.want([cpmm::ids::CLOCK]);
        self.ask(CallTarget::Pools(Part::default()));
        self.run().await
    }

    /// Reads these accounts.
    pub(super) async fn accounts(mut self, keys: &[Pubkey]) -> Result<(), SnapshotError> {
        self.want(keys.iter().copied());
        self.ask_for_collected();
        self.run().await
    }

    async fn run(mut self) -> Result<(), SnapshotError> {
        let mut in_flight = FuturesUnordered::new();
        loop {
            let reported = Instant::now();
            self.report(reported);
            let next_at = loop {
                let now = Instant::now();
                match self.jobs.begin(&self.pace, in_flight.len(), now) {
                    Ok(job) => in_flight.push(self.attempt(job)),
                    Err(next_at) => break next_at,
                }
            };
            if in_flight.is_empty() && next_at.is_none() {
                return Ok(());
            }
            let report_at = reported + PROGRESS_INTERVAL;
            let wake_at = next_at.map_or(report_at, |at| at.min(report_at));
            tokio::select! {
                Some(outcome) = in_flight.next() => self.take_in(outcome).await?,
                () = sleep_until(wake_at) => {}
            }
        }
    }

    fn attempt(&self, job: Job) -> impl Future<Output = Outcome> + use<> {
        let (caller, min_slot) = (self.caller.clone(), self.min_slot);
        async move {
            let result = caller.read(&job.wanted, min_slot).await;
            (job, result)
        }
    }

    async fn take_in(&mut self, (job, result): Outcome) -> Result<(), SnapshotError> {
        match result {
            Ok(snapshot) => {
                self.pace.answered();
                self.succeeded = Instant::now();
                self.progress.trouble = None;
                self.answered(&job, &snapshot);
                // Sending fails only when the session that reads is gone, and then the snapshot is of no use.
                let _ = self.snapshots.send(snapshot).await;
                Ok(())
            }
            Err(error) => self.failed(job, error),
        }
    }

    fn answered(&mut self, job: &Job, snapshot: &AccountSnapshot) {
        self.progress.calls_done += 1;
        self.progress.accounts_read += snapshot.accounts.len();
        let CallTarget::Pools(_) = &job.wanted else {
            return;
        };
        self.progress.accounts += snapshot.accounts.len();
        for (_, account) in &snapshot.accounts {
            if let DecodedAccount::Pool(pool) = account {
                self.want(dependencies(pool));
            }
        }
        self.listing -= 1;
        self.ask_for_collected();
        if self.listing == 0 {
            let elapsed = self.begun.elapsed();
            self.progress.listed = Some((elapsed, self.progress.accounts_read));
            let accounts = self.progress.accounts;
            tracing::info!(accounts, ?elapsed, "pools listed; reading their accounts");
        }
    }

    fn failed(&mut self, job: Job, error: SnapshotError) -> Result<(), SnapshotError> {
        let (now, random) = (Instant::now(), rand::random());
        match &error {
            SnapshotError::RateLimited { retry_after, .. } => {
                self.pace.refused(now, *retry_after, random);
            }
            SnapshotError::Unreachable { .. } => {}
            _ => self.pace.answered(),
        }
        // A node behind the stream is no fault, at first.
        if !matches!(error, SnapshotError::Behind { .. }) {
            tracing::debug!(%error, limit = self.pace.limit(), "a call failed");
            self.progress.repeated += 1;
        }
        let is_known = matches!(
            error,
            SnapshotError::RateLimited { .. } | SnapshotError::Behind { .. }
        );
        if self.progress.trouble.is_none() && !is_known {
            tracing::warn!(%error, "a call of the first read failed; it is repeated");
        }
        self.progress.trouble = Some(error.shown());
        let fruitless = now - self.succeeded;
        let patience = self.caller.limits().patience();
        match job.failed(error, fruitless, patience, random) {
            Next::GiveUp(error) => return Err(error),
            Next::Repeat(job, pause) => self.jobs.delay(job, now + pause),
            Next::Split(smaller) => self.replace(smaller),
        }
        Ok(())
    }

    /// Asks for the same by smaller calls.
    fn replace(&mut self, smaller: Vec<CallTarget>) {
        tracing::info!(
            calls = smaller.len(),
            "an answer is too large; reading it in parts"
        );
        self.progress.calls -= 1;
        if let Some(CallTarget::Pools(_)) = smaller.first() {
            self.listing -= 1;
        }
        for wanted in smaller {
            self.ask(wanted);
        }
    }

    fn ask(&mut self, wanted: CallTarget) {
        self.progress.calls += 1;
        self.listing += usize::from(matches!(wanted, CallTarget::Pools(_)));
        self.jobs.add(wanted);
    }

    fn want(&mut self, keys: impl IntoIterator<Item = Pubkey>) {
        for key in keys {
            if self.known.insert(key) {
                self.progress.accounts += 1;
                self.collected.push(key);
            }
        }
    }

    /// Makes calls of the accounts that were collected: whole ones only, while others may follow.
    fn ask_for_collected(&mut self) {
        let mut collected = mem::take(&mut self.collected);
        if self.listing > 0 {
            let whole = collected.len() - collected.len() % MAX_ACCOUNTS_PER_CALL;
            self.collected = collected.split_off(whole);
        }
        for keys in collected.chunks(MAX_ACCOUNTS_PER_CALL) {
            self.ask(CallTarget::Accounts(keys.to_vec()));
        }
    }

    fn report(&mut self, now: Instant) {
        let Some(reporting) = self.reporting else {
            return;
        };
        self.progress.bytes = self.caller.received();
        self.progress.elapsed = now - self.begun;
        reporting.send_replace(self.progress.clone());
        let (done, all) = self.progress.parts();
        self.shown.show(done, all, &self.progress);
    }
}
