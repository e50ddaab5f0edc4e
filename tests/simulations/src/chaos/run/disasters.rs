//! Disasters of a run: each is made, lasts, and is over when slots are stored again.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{bail, ensure};
use rand::Rng;
use sluice_store::{Commitment, Store};
use sluice_testkit::{free_port::free_port, network_link::NetworkLink};
use tokio::time::sleep;

use super::{Host, PATIENCE, POLL, Trial};
use crate::chaos::{
    database::{Database, Server},
    disaster::Disaster,
};

/// How long a new leader may take to come to slots that nobody stored yet: first it reads again all since the oldest filter that is
/// not in force, some hundred slots, which takes minutes on a slow and busy machine.
const READING_AGAIN: Duration = Duration::from_secs(600);

/// How long slots must be missing before the process that was stopped counts as the leader. A leader that lost its lead
/// meanwhile is as good: the one after it is found in the next round.
const WITHOUT_LEADER: Duration = Duration::from_secs(2);

/// How long a leader is suspended at most; it is resumed as soon as another one leads.
const SUSPENSION: Duration = Duration::from_secs(60);

/// How long the leader of a file stands still.
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(12);

/// How long a host without power stays down: longer than any lease.
const OUTAGE: Duration = Duration::from_secs(20);

/// How long the disk is full, a clock is set, and a standby follows before it is needed.
const HOLDING: Duration = Duration::from_secs(4);

/// How long there is no pooler.
const WITHOUT_POOLER: Duration = Duration::from_secs(1);

/// How long a leader that comes back may take to find out that it leads no more.
const FINDING_OUT: Duration = Duration::from_secs(5);

/// How far a clock is set, seconds.
const HOUR: i64 = 3_600;

impl Trial {
    /// Lets a disaster happen, and waits until slots are stored again.
    pub(super) async fn befall(&mut self, store: &Store, disaster: Disaster) -> anyhow::Result<()> {
        self.feed.set_slow(true);
        self.until_stored(store).await?;
        let pause = match disaster {
            Disaster::PowerLoss => self.lose_power(store).await?,
            Disaster::Partition => self.part(store).await?,
            Disaster::Stopped => self.stop_leader(store).await?,
            Disaster::FullDisk => self.fill_disk(store).await?,
            Disaster::ClockJump => self.set_clocks(store).await?,
            Disaster::Failover => self.fail_over(store).await?,
            Disaster::Pooler => self.pool(store).await?,
        };
        self.feed.set_slow(false);
        self.outcomes.note(disaster, pause);
        Ok(())
    }

    /// Waits until slots that began by now are stored.
    async fn until_stored(&mut self, store: &Store) -> anyhow::Result<()> {
        let newest = self.feed.newest_slot();
        let (mut stored, mut since) = (None, Instant::now());
        while stored < Some(newest) {
            // A database that does not answer says nothing of it.
            if let Ok(now) = store.checkpoint(Commitment::Confirmed).await
                && now > stored
            {
                (stored, since) = (now, Instant::now());
            }
            ensure!(
                since.elapsed() < READING_AGAIN,
                "no slot was stored for {} s; {}",
                READING_AGAIN.as_secs(),
                self.fleet.why_not
            );
            self.wait(POLL).await?;
        }
        Ok(())
    }

    /// Waits while processes and database are seen to.
    async fn wait(&mut self, pause: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + pause;
        loop {
            self.tend().await?;
            sleep(POLL).await;
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// Suspends the process that leads, and returns which one it is, and since when: each is suspended in turn until no slot is stored.
    async fn suspend_leader(&mut self, store: &Store) -> anyhow::Result<(usize, Instant)> {
        let begun = Instant::now();
        loop {
            for victim in 0..self.fleet.processes.len() {
                self.until_stored(store).await?;
                let since = Instant::now();
                let process = &mut self.fleet.processes[victim];
                process.resume()?;
                if !process.suspend(SUSPENSION)? {
                    continue;
                }
                // What it sent before is still stored.
                self.wait(POLL).await?;
                let newest = self.feed.newest_slot();
                self.wait(WITHOUT_LEADER).await?;
                if !has_stored(store, newest).await {
                    return Ok((victim, since));
                }
                self.fleet.processes[victim].resume()?;
            }
            ensure!(begun.elapsed() < PATIENCE, "no process leads");
        }
    }

    /// The leader's process dies, and nothing that it is connected to is told.
    async fn lose_power(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let (victim, since) = self.suspend_leader(store).await?;
        for link in self.links_of(victim) {
            link.strand();
        }
        self.fleet.processes[victim].kill(OUTAGE).await?;
        self.until_stored(store).await?;
        Ok(since.elapsed())
    }

    /// The leader goes on behind links that carry nothing, to everything or to the database alone.
    async fn part(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let (victim, since) = self.suspend_leader(store).await?;
        let everything = self.rng.random() || self.hosts[victim].database.is_none();
        self.freeze(victim, everything, true);
        self.fleet.processes[victim].resume()?;
        let mut pause = Duration::ZERO;
        if self.hosts[victim].database.is_some() {
            self.until_stored(store).await?;
            pause = since.elapsed();
        } else {
            // Nobody else takes over from a leader that can still renew its lease.
            self.wait(HOLDING).await?;
        }
        let refused = self.fleet.processes[victim].refused_writes();
        self.freeze(victim, everything, false);
        if pause.is_zero() {
            self.until_stored(store).await?;
            return Ok(since.elapsed());
        }
        self.find_out(victim, refused).await?;
        Ok(pause)
    }

    async fn stop_leader(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let (victim, since) = self.suspend_leader(store).await?;
        let is_file = matches!(self.database, Database::File(_));
        if is_file {
            // Stopped in the middle of a write it holds the lock of the file, and nobody can follow it.
            self.wait(LONGER_THAN_A_LEASE).await?;
        } else {
            self.until_stored(store).await?;
        }
        let pause = since.elapsed();
        let refused = self.fleet.processes[victim].refused_writes();
        self.fleet.processes[victim].resume()?;
        self.until_stored(store).await?;
        if is_file {
            return Ok(since.elapsed());
        }
        self.find_out(victim, refused).await?;
        Ok(pause)
    }

    /// Counts what is refused of a leader that is back. One whose connections were ended by the database tries nothing more.
    async fn find_out(&mut self, victim: usize, before: usize) -> anyhow::Result<()> {
        let back = Instant::now();
        let refused = loop {
            self.wait(POLL).await?;
            let refused = self.fleet.processes[victim].refused_writes();
            if refused > before || back.elapsed() > FINDING_OUT {
                break refused;
            }
        };
        self.outcomes.refused_writes += refused.saturating_sub(before);
        Ok(())
    }

    async fn fill_disk(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let Some(disk) = &self.disk else {
            bail!("only root may have a disk of its own: leave out full-disk");
        };
        let ballast = disk.fill()?;
        let since = Instant::now();
        self.wait(HOLDING).await?;
        fs::remove_file(ballast)?;
        self.until_stored(store).await?;
        Ok(since.elapsed())
    }

    /// Sets the clocks of hosts: those that share a file share a clock too.
    async fn set_clocks(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let shared = matches!(self.database, Database::File(_));
        self.receivers.let_clocks_be_off(HOUR.unsigned_abs());
        let since = Instant::now();
        let mut seconds = self.hour();
        for number in 0..self.fleet.processes.len() {
            if !shared {
                seconds = self.hour();
            }
            self.fleet.processes[number].set_clock(seconds)?;
        }
        self.wait(HOLDING).await?;
        self.until_stored(store).await?;
        Ok(since.elapsed())
    }

    /// An hour, before or behind.
    fn hour(&mut self) -> i64 {
        if self.rng.random() { HOUR } else { -HOUR }
    }

    async fn fail_over(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let standby = self.server().await?.follow().await?;
        self.wait(HOLDING).await?;
        let since = Instant::now();
        let links: Vec<_> = database_links(&self.hosts).collect();
        if let Database::Server(server) = &mut self.database {
            server.fail_over(standby, &links).await?;
        }
        self.until_stored(store).await?;
        Ok(since.elapsed())
    }

    /// Leads the processes through a pooler, which dies once they use it, and comes back; then past it again.
    async fn pool(&mut self, store: &Store) -> anyhow::Result<Duration> {
        let port = free_port()?;
        let pooler = self.server().await?.pool(port).await?;
        self.lead_to(pooler.address());
        self.until_stored(store).await?;
        let since = Instant::now();
        drop(pooler);
        self.wait(WITHOUT_POOLER).await?;
        let pooler = self.server().await?.pool(port).await?;
        self.until_stored(store).await?;
        let pause = since.elapsed();
        let address = self.server().await?.address();
        self.lead_to(address);
        self.until_stored(store).await?;
        drop(pooler);
        Ok(pause)
    }

    /// Lets the processes' ways to the database lead here, and ends what leads elsewhere.
    fn lead_to(&self, address: SocketAddr) {
        for link in database_links(&self.hosts) {
            link.redirect(address);
            link.cut();
        }
    }

    /// The server, once it runs.
    async fn server(&mut self) -> anyhow::Result<&mut Server> {
        while matches!(&self.database, Database::Server(server) if !server.is_up()) {
            self.wait(POLL).await?;
        }
        match &mut self.database {
            Database::Server(server) => Ok(server),
            Database::File(_) => bail!("a file has no server"),
        }
    }

    /// Whatever a process is connected to by.
    fn links_of(&self, victim: usize) -> impl Iterator<Item = &NetworkLink> {
        let host = &self.hosts[victim];
        let rest = [&host.stream, self.receivers.link()];
        host.database.iter().chain(rest)
    }

    /// Freezes or thaws the links of a process: all, or the one to the database.
    fn freeze(&self, victim: usize, everything: bool, frozen: bool) {
        let last = if everything { usize::MAX } else { 1 };
        for link in self.links_of(victim).take(last) {
            link.freeze(frozen);
        }
    }
}

/// The ways of processes to their database.
fn database_links(hosts: &[Host]) -> impl Iterator<Item = &NetworkLink> {
    hosts.iter().filter_map(|host| host.database.as_ref())
}

/// Whether a slot is stored. A database that does not answer says nothing of it.
async fn has_stored(store: &Store, slot: u64) -> bool {
    let checkpoint = store.checkpoint(Commitment::Confirmed).await;
    checkpoint.is_ok_and(|stored| stored >= Some(slot))
}
