//! The Rust client as it is published: packed, and used from a folder that has nothing else of this repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cache::remove;
use crate::command::{capture, command};
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

/// The published package.
const PACKAGE: &str = "sluice-client";

/// What a user writes: the parts of the client are used once, without the network.
const USER: &str = include_str!("rust/user.rs");

/// What a user depends on beside the client, to play its service: of the versions in the lock file.
const BESIDE: &str = "http = \"1\"\nstandardwebhooks = \"1\"\ntokio = { version = \"1\", features = [\"macros\", \"rt\"] }";

/// As dependencies are built in the root workspace, whose C code is not compiled once more then.
const PROFILE: &str = "[profile.dev]\ndebug = false";

/// Crates of the validator, of which none may be among the client's dependencies.
const VALIDATORS: [&str; 3] = ["solana-", "agave-", "spl-"];

/// The examples, which a test runs on a local chain.
const EXAMPLES: [&str; 5] = ["bot", "quote", "sponsor", "swap", "webhook_receiver"];

/// Builds the examples.
pub fn build_examples(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "rust-examples",
        "Building the Rust client's examples",
        "they swap on the local chain as a user's programs do",
        "a minute from nothing, seconds after an edit",
    )?;
    // The whole workspace is named so that its crates get the same features as in a test run, and are compiled once.
    let mut words = vec!["build", "--workspace", "--locked"];
    words.extend(EXAMPLES.iter().flat_map(|name| ["--example", name]));
    step.run(&mut Workspace::root(repo).cargo(repo, &words))?;
    step.done();
    Ok(())
}

/// Packs it, and builds and runs a user of it, without the network and with the versions of the lock file.
pub fn check(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "rust-client",
        "Packing the Rust client, and building and running a user of it",
        "what is published must build and work where nothing of this repository is",
        "2 minutes from nothing",
    )?;
    let packed = pack(repo, &step)?;
    let folder = std::env::temp_dir().join(format!("sluice-client-{}", std::process::id()));
    remove(&folder)?;
    let outcome = use_from(repo, &step, &packed, &folder);
    remove(&folder)?;
    outcome?;
    step.done();
    Ok(())
}

/// Packs it, without the network, and returns the package's file.
pub fn pack(repo: &Repo, step: &Step) -> Result<PathBuf> {
    let words = [
        "package",
        "--package",
        PACKAGE,
        "--locked",
        "--offline",
        "--no-verify",
        "--allow-dirty",
    ];
    step.run(&mut Workspace::root(repo).cargo(repo, &words))?;
    packed(repo)
}

fn use_from(repo: &Repo, step: &Step, packed: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("src"))
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut unpack = command(repo, "tar");
    // In a package all files have one time, long past, by which cargo would take what it built of an earlier one for fresh.
    unpack.args(["--touch", "-xzf"]).arg(packed);
    step.run(unpack.arg("-C").arg(folder))?;
    let name = packed.file_stem().context("the package has a name")?;
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         {PACKAGE} = {{ path = {:?}, features = [\"axum\"] }}\n{BESIDE}\n\n{PROFILE}\n\n[workspace]\n",
        folder.join(name)
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), USER)?;
    let answer = quoted(&fs::read_to_string(folder.join(name).join("openapi.json"))?)?;
    fs::write(folder.join("src/answer.json"), answer.to_string())?;
    // The versions that are tested here, without asking a registry for newer ones.
    fs::copy(repo.root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let target = std::path::absolute(repo.target())?;
    let cargo = |words: &[&str]| {
        let mut cargo = crate::command::cargo(repo);
        cargo.current_dir(folder).args(words);
        cargo.env("CARGO_TARGET_DIR", &target);
        cargo
    };
    let said = capture(&mut cargo(&["run", "--offline", "--quiet"]))?;
    let out_amount = &answer["quote"]["outAmount"];
    ensure!(
        said == format!("quoted {out_amount}\nverified msg_1\nrefused what was altered\n"),
        "a user of the published client got something else than what its service sent:\n{said}"
    );
    let tree = capture(&mut cargo(&[
        "tree",
        "--offline",
        "--prefix",
        "none",
        "--edges",
        "normal",
    ]))?;
    let found: Vec<&str> = tree
        .lines()
        .filter(|line| VALIDATORS.iter().any(|begin| line.starts_with(begin)))
        .collect();
    ensure!(
        found.is_empty(),
        "the client depends on crates of the validator: {}",
        found.join(", ")
    );
    Ok(())
}

/// The answer to a request for a quote, which the package's own document has as an example.
fn quoted(document: &str) -> Result<Value> {
    let document: Value = serde_json::from_str(document).context("openapi.json is no JSON")?;
    let answer = &document["paths"]["/v1/quote"]["get"]["responses"]["200"];
    let answer = &answer["content"]["application/json"]["example"];
    ensure!(
        answer["quote"]["outAmount"].is_u64(),
        "openapi.json has no example of a quote"
    );
    Ok(answer.clone())
}

/// The package's file.
fn packed(repo: &Repo) -> Result<PathBuf> {
    let manifest = repo.root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let version = version
        .context("the workspace has a version")?
        .trim_matches('"');
    let file = repo
        .target()
        .join(format!("package/{PACKAGE}-{version}.crate"));
    ensure!(file.is_file(), "cargo left no {}", file.display());
    Ok(file)
}
