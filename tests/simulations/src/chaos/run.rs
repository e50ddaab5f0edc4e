//! Run of the chaos: kills and suspends processes at random, then waits until all that is owed arrived.

mod disasters;
mod strikes;

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant, SystemTime},
};

use anyhow::ensure;
use rand::{Rng, SeedableRng, rngs::StdRng};
use sluice_store::{
    Access, NewWebhook, Secret, Store, StoreError, Timestamp, WebhookDefinition, WebhookId,
};
use sluice_testkit::{network_link::NetworkLink, small_disk::SmallDisk};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    clock::Clock,
    database::{Database, Kind},
    disaster::{Disaster, Outcomes},
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

/// How often the very first processes are killed, all of them, before anybody has made the database's tables; and
/// of how many kills of a plan one may be such a time.
const KILLS_BEFORE_BIRTH: u32 = 4;
const KILLS_PER_BIRTH: u32 = 12;

/// Starts that may fail while nothing is killed yet. A process that finds its database busy tries for longer.
const MOST_FAILED_STARTS: u32 = 10;

/// Size of the disk that is filled: room for a server with a standby, and their logs.
const DISK: &str = "512m";

/// Kills per disaster of a long run, which meets each of them more than once.
const KILLS_PER_DISASTER: u32 = 12;

/// Name of the file with the history of the run.
const HISTORY: &str = "history.jsonl";

/// Faults shown of each webhook.
const MOST_FAULTS: usize = 5;

/// Webhooks belong to no API key, so the limit is out of reach.
const MOST_WEBHOOKS: u32 = 1_000;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// On which database.
    pub kind: Kind,
    /// How many kills.
    pub kills: u32,
    /// What befalls the run between them, in turn; what cannot befall such a database is left out.
    pub disasters: Vec<Disaster>,
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
        return Err(error.context(trial.keep()));
    }
    trial.fleet.end().await?;
    let report = trial.report(begun.elapsed())?;
    if !report.is_clean() {
        progress(trial.keep());
    }
    Ok(report)
}

impl Plan {
    /// What befalls the run, in order: each once, and again where there are many kills.
    fn schedule(&self) -> Vec<Disaster> {
        let each: Vec<_> = (self.disasters.iter().copied())
            .filter(|disaster| disaster.befalls(self.kind))
            .collect();
        let many = usize::try_from(self.kills / KILLS_PER_DISASTER).unwrap_or(usize::MAX);
        let most = if each.is_empty() {
            0
        } else {
            many.max(each.len())
        };
        each.into_iter().cycle().take(most).collect()
    }
}

/// The links between a process and what it is connected to but for the receivers.
struct Host {
    /// To the database, where that is a server.
    database: Option<NetworkLink>,
    /// To the stream.
    stream: NetworkLink,
}

impl Host {
    async fn of(database: &Database, feed: &Feed) -> anyhow::Result<Self> {
        let database = match database.address() {
            Some(address) => Some(NetworkLink::to(address).await?),
            None => None,
        };
        let stream = NetworkLink::to(feed.address()?).await?;
        Ok(Self { database, stream })
    }
}

/// Everything that runs.
struct Trial {
    plan: Plan,
    rng: StdRng,
    fleet: Fleet,
    hosts: Vec<Host>,
    database: Database,
    /// The disk of the database, where it is to be filled.
    disk: Option<SmallDisk>,
    feed: Feed,
    receivers: Receivers,
    outcomes: Outcomes,
    promises: Vec<Promise>,
    kills: Kills,
    /// How often a process was suspended.
    suspended: u32,
    /// The process that is killed next, as soon as it runs again.
    again: Option<usize>,
    faults: Vec<String>,
    // Last, so that they are removed when nothing uses them any more.
    place: TempDir,
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
        // A short path, which the server's account can enter wherever the checkout is.
        let place = tempfile::Builder::new().prefix("chaos-disk-").tempdir()?;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
        let schedule = plan.schedule();
        let disk = if schedule.contains(&Disaster::FullDisk) {
            SmallDisk::mount(place.path(), DISK)?
        } else {
            None
        };
        let database = Database::make(plan.kind, place.path()).await?;
        let feed = Feed::start(plan.seed).await?;
        let history = File::create(folder.path().join(HISTORY))?;
        let receivers = Receivers::start(plan.seed, history).await?;
        let mut hosts = Vec::new();
        let mut processes = Vec::new();
        for number in 0..plan.kind.processes() {
            let host = Host::of(&database, &feed).await?;
            let clock = schedule.contains(&Disaster::ClockJump).then(|| {
                let file = folder.path().join(format!("clock-{number}"));
                Clock::new(&file)
            });
            let setting = database.setting(host.database.as_ref());
            let (stream, clock) = (host.stream.url(), clock.transpose()?);
            let folder = folder.path();
            processes.push(Process::new(
                number, &binary, folder, &stream, &setting, clock,
            )?);
            hosts.push(host);
        }
        Ok(Self {
            rng: StdRng::seed_from_u64(plan.seed),
            plan,
            fleet: Fleet {
                processes,
                ..Fleet::default()
            },
            hosts,
            database,
            disk,
            feed,
            receivers,
            outcomes: Outcomes::default(),
            promises: Vec::new(),
            kills: Kills::default(),
            suspended: 0,
            again: None,
            faults: Vec::new(),
            place,
            folder,
        })
    }

    async fn play(&mut self, progress: &impl Fn(String)) -> anyhow::Result<()> {
        self.kill_before_birth().await?;
        let store = self.database.open().await?;
        self.feed.wait_for(store.clone());
        for subscriber in from_the_start() {
            self.subscribe(&store, subscriber).await?;
        }
        self.until_in_force(&store).await?;
        self.feed.set_eventful(true);
        let schedule = self.plan.schedule();
        let mut disasters = schedule.iter().zip(1..);
        let share = self.plan.kills / 4;
        let mut latecomers = latecomers().into_iter();
        let mut next = Instant::now();
        let mut reported = 0;
        let mut ahead = disasters.next();
        while self.kills.total() < self.plan.kills || ahead.is_some() {
            self.tend().await?;
            if let Some((disaster, nth)) = ahead
                && self.kills.total() >= self.plan.kills * nth / u32::try_from(schedule.len())?
            {
                progress(format!("{}: {}", self.plan.kind.name(), disaster.name()));
                self.befall(&store, *disaster).await?;
                ahead = disasters.next();
            } else if Instant::now() >= next {
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

    /// Leaves everything where it is, and says where.
    fn keep(self) -> String {
        // A disk in memory that stays ends with the machine.
        std::mem::forget(self.disk);
        let (folder, place) = (self.folder.keep(), self.place.keep());
        format!(
            "logs and history are in {}, the database is in {}",
            folder.display(),
            place.display()
        )
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
            outcomes: self.outcomes.clone(),
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
