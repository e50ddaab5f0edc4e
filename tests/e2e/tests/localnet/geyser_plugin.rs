//! The Geyser plugin that `GEYSER_SO` and `GEYSER_CONFIG` put in ours' place.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use sluice_localnet::{
    Artifacts,
    artifacts::{Fingerprint, GEYSER_CONFIG, GEYSER_SO, Overrides},
};

use crate::binary::{Ended, Run};

/// The demo may take this long from the second run on.
const DEMO_DEADLINE: Duration = Duration::from_secs(180);

/// Our own plugin and its template, whatever the environment names.
fn ours() -> anyhow::Result<Artifacts> {
    let without_replacement = |name: &str| {
        let replaces = [GEYSER_SO, GEYSER_CONFIG].contains(&name);
        let value = env::var_os(name).filter(|value| !replaces && !value.is_empty());
        value.map(PathBuf::from)
    };
    Ok(Artifacts::find_with(
        &Overrides::default(),
        without_replacement,
    )?)
}

/// Runs the demo with our plugin under another name, and a template made from its own.
fn demo_with(
    folder: &Path,
    template: impl Fn(String) -> String,
) -> anyhow::Result<(Ended, PathBuf)> {
    let ours = ours()?;
    let plugin = folder.join("another_plugin.so");
    fs::copy(&ours.plugin, &plugin)?;
    let config = folder.join("another.json5");
    fs::write(&config, template(fs::read_to_string(&ours.plugin_config)?))?;
    let environment = [(GEYSER_SO, plugin.as_path()), (GEYSER_CONFIG, &config)];
    let ended = Run::start(&["--demo"], &environment)?.end(DEMO_DEADLINE)?;
    Ok((ended, plugin))
}

#[test]
fn geyser_so_replaces_the_plugin() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (ended, plugin) = demo_with(folder.path(), |template| template)?;
    ensure!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    let line = format!("plugin    {}", Fingerprint::of(&plugin)?);
    ensure!(
        ended.stdout.contains(&line),
        "no {line:?} in: {}",
        ended.stdout
    );
    Ok(())
}

#[test]
fn a_plugin_that_does_not_serve_where_it_should_is_named() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    // It takes a port of its own choice.
    let elsewhere = |template: String| {
        let address = "address: \"{{address}}\"";
        assert!(template.contains(address), "{template}");
        template.replace(address, "address: \"127.0.0.1:0\" /* {{address}} */")
    };
    let (ended, plugin) = demo_with(folder.path(), elsewhere)?;
    ensure!(!ended.status.success(), "{}", ended.stdout);
    for part in [
        &*plugin.to_string_lossy(),
        "does not listen on",
        "{{address}}",
    ] {
        ensure!(
            ended.stderr.contains(part),
            "no {part:?} in {}",
            ended.stderr
        );
    }
    Ok(())
}

#[test]
fn a_plugin_that_fails_to_load_is_reported_with_the_end_of_the_log() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let broken = |template: String| template.replace("filter_limits", "filter_limit");
    let (ended, _) = demo_with(folder.path(), broken)?;
    ensure!(!ended.status.success(), "{}", ended.stdout);
    ensure!(
        ended.stderr.contains("the validator died") && ended.stderr.contains("filter_limit"),
        "{}",
        ended.stderr
    );
    Ok(())
}

#[test]
fn a_missing_plugin_is_named() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let nowhere = folder.path().join("nowhere.so");
    let config = ours()?.plugin_config;
    let environment = [(GEYSER_SO, nowhere.as_path()), (GEYSER_CONFIG, &config)];
    let ended = Run::start(&["--demo"], &environment)?.end(DEMO_DEADLINE)?;
    ensure!(!ended.status.success());
    ensure!(
        ended.stderr.contains("GEYSER_SO names") && ended.stderr.contains("nowhere.so"),
        "{}",
        ended.stderr
    );
    Ok(())
}
