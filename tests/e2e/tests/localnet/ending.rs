//! End of a localnet: nothing of it is left, however it ends.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sluice_localnet::ports::is_free;

use crate::binary::Run;

/// How long a boot may take.
const BOOT: Duration = Duration::from_secs(240);

/// How long an end may take.
const END: Duration = Duration::from_secs(90);

/// What a running localnet says of itself.
struct Announced {
    validator: Pid,
    sluice: Pid,
    ports: Vec<u16>,
}

impl Announced {
    fn read(run: &mut Run) -> anyhow::Result<Self> {
        let text = run.wait_for("Ctrl-C stops everything.", BOOT)?;
        let id = |name: &str| -> anyhow::Result<Pid> {
            let digits = text
                .split_once(name)
                .with_context(|| format!("no {name:?} in: {text}"))?
                .1
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or_default();
            Ok(Pid::from_raw(digits.parse()?))
        };
        let ports = text
            .split("http://127.0.0.1:")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
            .filter_map(|digits| digits.parse().ok())
            // The example webhook names a receiver that is not part of the net.
            .filter(|port| *port != 3000)
            .collect();
        Ok(Self {
            validator: id("processes validator ")?,
            sluice: id(", Sluice ")?,
            ports,
        })
    }

    fn children(&self) -> [Pid; 2] {
        [self.validator, self.sluice]
    }

    fn is_running(&self) -> bool {
        self.children().iter().all(|id| kill(*id, None).is_ok())
            && !self.ports.is_empty()
            && self.ports.iter().all(|port| !is_free(*port))
    }

    /// Waits until no process and no port is left.
    fn until_gone(&self, patience: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let alive = self.children().map(|id| kill(id, None).is_ok());
            let taken: Vec<_> = self.ports.iter().filter(|port| !is_free(**port)).collect();
            if alive == [false, false] && taken.is_empty() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < patience,
                "left: validator and Sluice {alive:?}, ports {taken:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn ctrl_c_leaves_no_process_and_no_port() -> anyhow::Result<()> {
    let mut run = Run::start(&[], &[])?;
    let announced = Announced::read(&mut run)?;
    ensure!(announced.is_running(), "the announced parts do not run");
    run.signal(Signal::SIGINT)?;
    let ended = run.end(END)?;
    ensure!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    ensure!(ended.stdout.contains("no process"), "{}", ended.stdout);
    // Not a moment later: it says that nothing is left, so nothing may be left.
    announced.until_gone(Duration::ZERO)
}

#[test]
fn a_dead_child_ends_the_localnet_with_an_error() -> anyhow::Result<()> {
    let mut run = Run::start(&[], &[])?;
    let announced = Announced::read(&mut run)?;
    kill(announced.validator, Signal::SIGKILL)?;
    let ended = run.end(END)?;
    ensure!(!ended.status.success(), "it ended with {}", ended.status);
    ensure!(
        ended
            .stderr
            .contains("the validator died (killed by SIGKILL)"),
        "{}",
        ended.stderr
    );
    announced.until_gone(Duration::ZERO)
}

/// Nothing is left to clean up then, but the death signal that each child has set.
#[test]
fn even_a_killed_localnet_leaves_no_process() -> anyhow::Result<()> {
    let mut run = Run::start(&[], &[])?;
    let announced = Announced::read(&mut run)?;
    ensure!(announced.is_running(), "the announced parts do not run");
    run.signal(Signal::SIGKILL)?;
    run.end(END)?;
    announced.until_gone(END)
}
