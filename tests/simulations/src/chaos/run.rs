//! Run of the chaos: kills and suspends processes at random, then waits until all that is owed arrived.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant, SystemTime},
};

use anyhow::ensure;
use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_store::{
    Access, NewWebhook, Secret, Store, StoreError, Timestamp, WebhookDefinition, WebhookId,
};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    database::{Database, Kind, Part},
    drained::{all_in_force, is_drained},
    feed::Feed,
    fleet::Fleet,
    history::{History, block_line, webhook_line},
    numbered_chain::Fate,
    process::{Process, beside_this_executable},
    receiver::Receivers,
    report::{Kills, Report},
    subscriber::{Subscriber, from_the_start, latecomers},
    verdict::{Promise, first_faults},
};

/// How long the first webhooks may take to be in force, and a new one to be written while everything is killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two looks at everything that runs.
const POLL: Duration = Duration::from_millis(10);

/// Pause between two questions whether everything is delivered.
const DRAIN_POLL: Duration = Duration::from_millis(200);

/// A process this young counts as newborn: it opens the database, takes the lead and has slots replayed.
const NEWBORN: Duration = Duration::from_millis(300);

/// How long a process is suspended: shorter than the lease of a leader, after which it goes on as if nothing had been; or
/// longer, after which another one leads, and what it still writes as the leader must be refused.
const SHORT_SUSPENSION: Range<u64> = 0..3_000;
const LONG_SUSPENSION: Range<u64> = 10_000..14_000;

/// How often the very first processes are killed, all of them, before anybody has made the database's tables; and
/// of how many kills of a plan one may be such a time.
const KILLS_BEFORE_BIRTH: u32 = 4;
const KILLS_PER_BIRTH: u32 = 12;

/// Starts that may fail while nothing is killed yet. A process that finds its database busy tries for longer.
const MOST_FAILED_STARTS: u32 = 10;

/// Name of the file with the history of the run.
const HISTORY: &str = "history.jsonl";

/// Faults shown of each webhook.
const MOST_FAULTS: usize = 5;

/// Webhooks belong to no API key, so the limit is out of reach.
const MOST_WEBHOOKS: u32 = 1_000;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// On which database.
    pub kind: Kind,
    /// How many kills.
    pub kills: u32,
    /// The same seed plays the same chain, answers the same attempts alike and draws the same kills; what runs between
    /// them is as fast as the machine.
    pub seed: u64,
    /// How long everything owed may take to arrive once nothing is killed any more.
    pub draining: Duration,
}

/// Runs a plan; `progress` is called with its progress.
///
/// # Errors
/// When something fails that is not under test, or nothing ever gets going. What is wrong with what is under test is
/// in the report.
pub async fn run(plan: Plan, progress: impl Fn(String)) -> anyhow::Result<Report> {
    let begun = Instant::now();
    let mut trial = Trial::set(plan).await?;
    let played = trial.play(&progress).await;
    if let Err(error) = played {
        let kept = trial.folder.keep();
        return Err(error.context(format!("logs and database are in {}", kept.display())));
    }
    trial.fleet.end().await?;
    let report = trial.report(begun.elapsed())?;
    if !report.is_clean() {
        let kept = trial.folder.keep();
        progress(format!("logs and database are in {}", kept.display()));
    }
    Ok(report)
}

/// Everything that runs.
struct Trial {
    plan: Plan,
    rng: StdRng,
    fleet: Fleet,
    database: Database,
    feed: Feed,
    receivers: Receivers,
    promises: Vec<Promise>,
    kills: Kills,
    /// How often a process was suspended.
    suspended: u32,
    /// The process that is killed next, as soon as it runs again.
    again: Option<usize>,
    faults: Vec<String>,
    // Last, so that it is removed when nothing uses it any more.
    folder: TempDir,
}

impl Trial {
    async fn set(plan: Plan) -> anyhow::Result<Self> {
        let sluice = beside_this_executable("sluice")?;
        ensure!(
            sluice.is_file(),
            "{} does not exist; `cargo xtask chaos` and `cargo xtask test` build it",
            sluice.display()
        );
        let folder = tempfile::Builder::new()
            .prefix("chaos-")
            .tempdir_in(sluice.parent().unwrap_or(&sluice))?;
        // The server's account, when that is another one, must be able to enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        // A build meanwhile must not exchange the program under test.
        let binary = folder.path().join("sluice");
        fs::hard_link(&sluice, &binary)?;
        let database = Database::make(plan.kind, folder.path()).await?;
        let feed = Feed::start(plan.seed).await?;
        let history = File::create(folder.path().join(HISTORY))?;
        let receivers = Receivers::start(plan.seed, history).await?;
        let (endpoint, setting) = (feed.endpoint().url.as_str(), database.setting());
        let processes = (0..plan.kind.processes())
            .map(|number| Process::new(number, &binary, folder.path(), endpoint, &setting))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Self {
            plan,
            rng: StdRng::seed_from_u64(plan.seed),
            fleet: Fleet {
                processes,
                ..Fleet::default()
            },
            database,
            feed,
            receivers,
            promises: Vec::new(),
            kills: Kills::default(),
            suspended: 0,
            again: None,
            faults: Vec::new(),
            folder,
        })
    }

    async fn play(&mut self, progress: &impl Fn(String)) -> anyhow::Result<()> {
        self.kill_before_birth().await?;
        let store = self.database.open().await?;
        for subscriber in from_the_start() {
            self.subscribe(&store, subscriber).await?;
        }
        self.until_in_force(&store).await?;
        self.feed.set_eventful(true);
        let mut latecomers = latecomers().into_iter();
        let share = self.plan.kills / 4;
        let mut next = Instant::now();
        let mut reported = 0;
        while self.kills.total() < self.plan.kills {
            self.tend().await?;
            if Instant::now() >= next {
                next = Instant::now() + self.strike().await?;
            }
            let kills = self.kills.total();
            let late = u32::try_from(self.promises.len() - from_the_start().len())?;
            if kills > share.saturating_mul(late + 1)
                && let Some(subscriber) = latecomers.next()
            {
                self.subscribe(&store, subscriber).await?;
            }
            if kills >= reported + 20 {
                reported = kills;
                progress(self.progress());
            }
            sleep(POLL).await;
        }
        self.feed.set_eventful(false);
        self.receivers.heal();
        let end = self.feed.newest_slot();
        progress(format!(
            "{}; now everything owed must arrive",
            self.progress()
        ));
        let drained = self.drain(&store, end).await?;
        if !drained {
            let seconds = self.plan.draining.as_secs();
            self.faults.push(format!(
                "not everything was delivered {seconds} s after the last kill"
            ));
        }
        store.close().await;
        Ok(())
    }

    fn progress(&self) -> String {
        format!(
            "{}: {} of {} kills, {} messages accepted",
            self.plan.kind.name(),
            self.kills.total(),
            self.plan.kills,
            self.receivers.ledger().accepted()
        )
    }

    /// Kills processes while they make the tables, before there is anything to lose.
    async fn kill_before_birth(&mut self) -> anyhow::Result<()> {
        for _ in 0..KILLS_BEFORE_BIRTH.min(self.plan.kills / KILLS_PER_BIRTH) {
            self.fleet.start_due()?;
            sleep(Duration::from_millis(self.rng.random_range(0..120))).await;
            for process in &mut self.fleet.processes {
                self.kills.newborn += u32::from(process.kill(Duration::ZERO).await?);
            }
        }
        Ok(())
    }

    /// Makes a webhook, as the API would, whatever happens to the database meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "a row of a test may have any time"
    )]
    async fn subscribe(&mut self, store: &Store, subscriber: Subscriber) -> anyhow::Result<()> {
        let id = WebhookId::from_random(self.rng.random());
        let secret = Secret::from_random(self.rng.random());
        self.receivers.ledger().expect(&id, secret.expose())?;
        let definition = WebhookDefinition {
            commitment: subscriber.commitment,
            order: subscriber.order,
            ..WebhookDefinition::new(
                self.receivers.url(id.as_str()),
                subscriber.kinds.iter().copied().collect(),
                subscriber.filters.clone(),
            )
        };
        let new = NewWebhook {
            id: id.clone(),
            owner: Access::All,
            definition,
            secret,
            created: Timestamp::from(SystemTime::now()),
            relay_until: None,
        };
        let deadline = Instant::now() + PATIENCE;
        let since = loop {
            match written(store, &new).await {
                Ok(since) => break since,
                Err(error) => {
                    ensure!(
                        Instant::now() < deadline,
                        "a webhook cannot be made: {error}"
                    );
                }
            }
            self.tend().await?;
            sleep(POLL).await;
        };
        let promise = Promise {
            webhook: id.to_string(),
            subscriber,
            // Before anything was read, everything from the first event on.
            since: since.unwrap_or(0),
        };
        let line = webhook_line(&promise, new.secret.expose());
        self.receivers.write(&line)?;
        self.promises.push(promise);
        Ok(())
    }

    /// Waits until the stream's filter serves the first webhooks. Processes are started, none is killed.
    async fn until_in_force(&mut self, store: &Store) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.tend().await?;
            if all_in_force(store).await? {
                return Ok(());
            }
            let failed = self.fleet.failed_starts;
            ensure!(
                failed < MOST_FAILED_STARTS && Instant::now() < deadline,
                "no process ever indexes; {failed} could not start: {}",
                self.fleet.why_not
            );
            sleep(POLL).await;
        }
    }

    /// Sees to what ended and to what is due to start.
    async fn tend(&mut self) -> anyhow::Result<()> {
        self.database.tend().await?;
        let wrong = self.fleet.look()?;
        self.faults.extend(wrong);
        self.fleet.start_due()
    }

    /// Kills something, suspends it, or asks it to end; returns how long to let the rest be.
    async fn strike(&mut self) -> anyhow::Result<Duration> {
        // Each blow draws for itself, so that what one of them meets does not change the next ones.
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let pause = pause(&mut rng);
        let victim = rng.random_range(0..self.fleet.processes.len());
        let rest = rest(&mut rng);
        if let Some(again) = self.again.take() {
            self.kill(&[again], rest).await?;
            return Ok(pause);
        }
        match rng.random_range(0..100) {
            0..5 => self.fleet.processes[victim].stop()?,
            5..30 if self.strike_database(&mut rng)? => {}
            30..38 => {
                let all: Vec<_> = (0..self.fleet.processes.len()).collect();
                self.kill(&all, rest).await?;
            }
            38..60 => {
                self.kill(&[victim], rest).await?;
                self.again = Some(victim);
                return Ok(rest + NEWBORN.mul_f64(rng.random()));
            }
            60..70 => {
                let suspended = self.fleet.processes[victim].suspend(suspension(&mut rng))?;
                self.suspended += u32::from(suspended);
            }
            _ => self.kill(&[victim], rest).await?,
        }
        Ok(pause)
    }

    /// Kills a part of the database, if it has any that runs.
    fn strike_database(&mut self, rng: &mut StdRng) -> anyhow::Result<bool> {
        let part = self.database.kill(rng)?;
        match part {
            Some(Part::Postmaster) => self.kills.postmasters += 1,
            Some(Part::Backend) => self.kills.backends += 1,
            None => {}
        }
        Ok(part.is_some())
    }

    /// Kills those of these processes that run.
    async fn kill(&mut self, victims: &[usize], rest: Duration) -> anyhow::Result<()> {
        for victim in victims {
            let process = &mut self.fleet.processes[*victim];
            let Some(since) = process.runs_since() else {
                continue;
            };
            let is_newborn = since.elapsed() < NEWBORN;
            if process.kill(rest).await? {
                self.kills.newborn += u32::from(is_newborn);
                self.kills.processes += u32::from(!is_newborn);
            }
        }
        Ok(())
    }

    /// Waits until every webhook's filter is in force, the stream is read beyond `end` at every commitment, and nothing is owed
    /// any more.
    async fn drain(&mut self, store: &Store, end: u64) -> anyhow::Result<bool> {
        let deadline = Instant::now() + self.plan.draining;
        while Instant::now() < deadline {
            self.tend().await?;
            if is_drained(store, end).await.unwrap_or(false) {
                return Ok(true);
            }
            sleep(DRAIN_POLL).await;
        }
        Ok(false)
    }

    /// Judges what was written down, and not what this process remembers.
    fn report(&self, took: Duration) -> anyhow::Result<Report> {
        let blocks = self.feed.blocks();
        for block in &blocks {
            self.receivers.write(&block_line(block))?;
        }
        let met = self.receivers.ledger().faults.clone();
        self.receivers.flush()?;
        let written = fs::read_to_string(self.folder.path().join(HISTORY))?;
        let history = History::parse(&written).map_err(anyhow::Error::msg)?;
        let judged = history.judge().map_err(anyhow::Error::msg)?;
        ensure!(
            judged.findings.len() == self.promises.len(),
            "the history is of other webhooks"
        );
        let mut faults = self.faults.clone();
        faults.extend(met.into_iter().chain(judged.faults));
        faults.extend(first_faults(&judged.findings, MOST_FAULTS));
        let events: usize = blocks.iter().map(|block| block.events.len()).sum();
        let dropped = blocks.iter().filter(|block| block.fate == Fate::Dropped);
        Ok(Report {
            kind: self.plan.kind,
            seed: self.plan.seed,
            kills: self.kills,
            suspended: self.suspended,
            stopped: self.fleet.stopped,
            failed_starts: self.fleet.failed_starts,
            starts: self.fleet.processes.iter().map(Process::starts).sum(),
            events: u64::try_from(events).unwrap_or(u64::MAX),
            dropped_blocks: u64::try_from(dropped.count()).unwrap_or(u64::MAX),
            findings: judged.findings,
            answered: self.receivers.answered(),
            faults,
            took,
        })
    }
}

/// Writes a webhook unless it is written already, which a lost answer may have hidden, and returns the first slot of
/// which it misses nothing.
async fn written(store: &Store, new: &NewWebhook) -> Result<Option<u64>, StoreError> {
    let webhook = match store.webhook(&Access::All, &new.id).await? {
        Some(webhook) => webhook,
        None => store.create_webhook(new, MOST_WEBHOOKS).await?,
    };
    let change = store.filter_change(webhook.matched_revision).await?;
    Ok(change.and_then(|change| change.requested_slot))
}

/// A quarter of the pauses are moments, a quarter seconds: some kills come together, and some find work well under
/// way.
fn pause(rng: &mut StdRng) -> Duration {
    let millis = match rng.random_range(0..4) {
        0 => rng.random_range(0..200),
        1 | 2 => rng.random_range(200..3_000),
        _ => rng.random_range(3_000..6_000),
    };
    Duration::from_millis(millis)
}

/// How long a process stays down. Mostly hardly at all, as under a supervisor.
fn rest(rng: &mut StdRng) -> Duration {
    let most = if rng.random_ratio(1, 5) { 3_000 } else { 200 };
    Duration::from_millis(rng.random_range(0..most))
}

/// Half of the suspensions are short.
fn suspension(rng: &mut StdRng) -> Duration {
    let millis = if rng.random() {
        SHORT_SUSPENSION
    } else {
        LONG_SUSPENSION
    };
    Duration::from_millis(rng.random_range(millis))
}
