//! `clients`: swaps with the tools that integrators use, in JavaScript and Python, and the console in a browser.
//!
//! The TypeScript client is one of them: it is built and tested here.
//!
//! Interpreters are the machine's own where they are recent enough. Packages come from npm and PyPI, exactly those whose
//! hashes stand in the lock files of `tests/clients`, `clients/typescript` and `clients/guard`, into `target/clients`; while a lock file and its interpreter stay
//! the same, nothing is installed again and no network is needed.

pub mod guard;
mod node;
pub mod python;
pub mod rust;
pub mod typescript;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::cache::{Cache, remove};
use crate::nextest::{self, Nextest};
use crate::packages::Package;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;
use crate::{binaries, exchange, plugin, programs, system_packages, validator};

use self::node::NodeJs;
use self::python::Python;

/// The tests of `tests/e2e/tests/localnet/clients.rs`, as the test runner names them.
const TESTS: [&str; 3] = ["--test", "localnet", "clients::"];

/// The browser that the console is tested in: without windows, or the whole one where that is there already.
const BROWSER: Package = Package::or_tool("chromium-headless-shell", "chromium");

/// System packages that are due: the browser, and interpreters where the machine's own do not do.
pub fn packages_needed(repo: &Repo) -> Vec<Package> {
    [python::packages_needed(repo), &[BROWSER]].concat()
}

/// Finds Node and installs what the lock files name.
pub fn fetch(repo: &Repo, python: &Python) -> Result<()> {
    let node = install(repo, python)?;
    typescript::install(repo, &node)?;
    guard::install(repo, &node)
}

/// Finds the interpreters, installs what the lock files name, and builds our own clients.
pub fn set_up(repo: &Repo) -> Result<()> {
    let node = install(repo, &Python::find(repo)?)?;
    typescript::build(repo, &node)?;
    guard::build(repo, &node)?;
    rust::build_examples(repo)
}

fn install(repo: &Repo, python: &Python) -> Result<NodeJs> {
    for environment in ["python", "fuzz"] {
        python.environment(repo, &sources(repo).join(environment))?;
    }
    node::set_up(repo, python)
}

/// Builds our own clients and packs them into a folder as they are published: two packages of npm, and a crate.
pub fn pack(repo: &Repo, folder: &Path) -> Result<()> {
    let node = node::find(repo, &Python::find(repo)?)?;
    typescript::build(repo, &node)?;
    guard::build(repo, &node)?;
    let step = Step::begin(
        repo,
        "pack-clients",
        "Packing the clients",
        "those who use the service take them from npm and crates.io",
        "10 s",
    )?;
    for client in [typescript::folder(repo), guard::folder(repo)] {
        node::pack(repo, &step, &node, &client, folder)?;
    }
    let packed = rust::pack(repo, &step)?;
    let name = packed.file_name().context("a package has a name")?;
    fs::copy(&packed, folder.join(name))
        .with_context(|| format!("cannot copy {}", packed.display()))?;
    step.done();
    Ok(())
}

/// Sets everything up and runs the clients' tests, and no others.
pub fn run(repo: &Repo, cache: &Cache) -> Result<()> {
    let replacement = exchange::replacement()?;
    let geyser = plugin::Replacement::find(repo)?;
    system_packages::require(repo, cache, &packages_needed(repo))?;
    let nextest = Nextest::set_up(repo, cache)?;
    let validator = validator::set_up(repo, cache)?;
    set_up(repo)?;
    programs::build_served(repo, cache)?;
    plugin::provide(repo, &geyser)?;
    binaries::build(repo)?;
    let step = Step::begin(
        repo,
        "test-clients",
        "Swapping with the tools that integrators use",
        "JavaScript and Python, our clients' examples, all on one local chain, and a fuzzer on the API's own description",
        "a minute",
    )?;
    let mut run = nextest.command(repo)?;
    Workspace::root(repo).apply(&mut run);
    run.args(["--locked", "--success-output", "immediate"])
        .args(TESTS);
    run.env("SLUICE_VALIDATOR", validator);
    exchange::hand_on(replacement.as_deref(), &mut run);
    geyser.hand_on(&mut run);
    let counts = nextest::run(&step, &mut run)?;
    step.done();
    anyhow::ensure!(counts.failed == 0, "the tools' output is above");
    Ok(())
}

/// Where the lock files and the tests are.
fn sources(repo: &Repo) -> PathBuf {
    repo.root().join("tests/clients")
}

/// Where packages are installed.
fn installed(repo: &Repo) -> PathBuf {
    repo.target().join("clients")
}

/// Held while a folder is made: of two stages that run side by side and need the same one, the second waits and finds it made.
static MAKING: Mutex<()> = Mutex::new(());

/// Makes `folder` by `make` unless it was made by the same recipe before. The recipe is everything that `make` reads; it
/// is noted last and beside the folder, so that an interrupted installation never looks finished.
fn once(folder: &Path, recipe: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = folder.with_extension("recipe");
    if folder.is_dir() && fs::read_to_string(&stamp).is_ok_and(|present| present == recipe) {
        return Ok(());
    }
    remove(&stamp)?;
    remove(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    make()?;
    fs::write(&stamp, recipe).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Makes `link` point to `to`; one that does already is left alone.
fn link(to: &Path, link: &Path) -> Result<()> {
    if fs::read_link(link).is_ok_and(|present| present == to) {
        return Ok(());
    }
    remove(link)?;
    let folder = link.parent().context("a link stands in a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| symlink(to, link))
        .with_context(|| format!("cannot make the link {}", link.display()))
}

/// The first three numbers of what an interpreter says of its version: `v20.18.1` or `Python 3.11.2`.
fn version(text: &str) -> Option<[u32; 3]> {
    let numbers = text
        .trim()
        .trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut parts = numbers.split('.').map(|part| {
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        part[..digits].parse().ok()
    });
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(version("v20.18.1\n"), Some([20, 18, 1]));
        assert_eq!(version("Python 3.13.0rc2"), Some([3, 13, 0]));
        assert_eq!(version("v20"), None);
        assert_eq!(version("node: not found"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn makes_again_only_what_has_another_recipe_or_was_interrupted() {
        let root = std::env::temp_dir().join(format!("xtask-clients-{}", std::process::id()));
        let folder = root.join("made");
        let write = |name: &'static str| fs::write(folder.join(name), "").context("writable");
        assert!(
            once(&folder, "one", || write("half")
                .and_then(|()| bail!("interrupted")))
            .is_err()
        );
        once(&folder, "one", || write("whole")).expect("made");
        assert!(!folder.join("half").exists(), "leftovers were kept");
        once(&folder, "one", || bail!("made twice")).expect("it was there");
        once(&folder, "two", || write("other")).expect("made anew");
        assert!(!folder.join("whole").exists());
        fs::remove_dir_all(root).expect("the folder is ours");
    }

    #[test]
    fn of_two_stages_that_need_a_folder_at_once_one_makes_it() {
        let root = std::env::temp_dir().join(format!("xtask-at-once-{}", std::process::id()));
        let folder = root.join("made");
        let made = AtomicUsize::new(0);
        let make = || {
            made.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(100));
            Ok(())
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| once(&folder, "one", make).expect("made"));
            }
        });
        assert_eq!(made.into_inner(), 1);
        fs::remove_dir_all(root).expect("the folder is ours");
    }

    #[test]
    fn a_link_is_replaced_when_it_points_elsewhere() {
        let root = std::env::temp_dir().join(format!("xtask-link-{}", std::process::id()));
        let at = root.join("bin/node");
        link(Path::new("/old"), &at).expect("made");
        link(Path::new("/new"), &at).expect("replaced");
        assert_eq!(fs::read_link(&at).expect("a link"), Path::new("/new"));
        fs::remove_dir_all(root).expect("the folder is ours");
    }
}
