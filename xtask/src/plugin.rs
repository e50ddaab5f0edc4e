//! `build plugin`: the Geyser plugin, compiled and published under `target/geyser-plugin`, or what replaces it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::compiler;
use crate::output::say;
use crate::publish::publish;
use crate::repo::Repo;
use crate::step::Step;
use crate::validator;
use crate::workspaces::Workspace;

/// Stops when the validators at hand were all built by another rustc than the plugin would be.
pub fn check_compiler(repo: &Repo, cache: &Cache) -> Result<()> {
    let search = validator::search(repo, cache)?;
    if let Some(fitting) = search.fitting {
        say!(
            "==> The plugin will fit {} (built by the pinned rustc)",
            repo.shown(&fitting)
        );
        return Ok(());
    }
    if let Some((path, unfit)) = search.passed_over.first() {
        bail!(
            "the Geyser plugin would not fit {}: {unfit}\n{}",
            path.display(),
            validator::explanation(unfit)
        );
    }
    say!("==> No validator here yet; one built later by the pinned rustc will fit the plugin");
    Ok(())
}

/// Names the plugin that replaces ours, on the local chain and in every test that runs one.
const REPLACEMENT: &str = "GEYSER_SO";

/// Names the template of the plugin's configuration, ours or another's.
const CONFIG: &str = "GEYSER_CONFIG";

/// What the environment puts in the place of our plugin and of its configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replacement {
    library: Option<PathBuf>,
    config: Option<PathBuf>,
}

impl Replacement {
    /// Reads the environment; the paths hold in every working directory.
    pub fn find(repo: &Repo) -> Result<Self> {
        let found = Self::find_with(|name| env::var_os(name))?;
        if let Some(library) = &found.library {
            check_replacement(library, &compiler::pinned_commit(repo)?)?;
        }
        Ok(found)
    }

    fn find_with(environment: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let named = |variable: &str| -> Result<Option<PathBuf>> {
            let Some(named) = environment(variable).filter(|value| !value.is_empty()) else {
                return Ok(None);
            };
            let file = std::path::absolute(named)?;
            if !file.is_file() {
                bail!("{variable} names {}, which is no file", file.display());
            }
            Ok(Some(file))
        };
        let found = Self {
            library: named(REPLACEMENT)?,
            config: named(CONFIG)?,
        };
        if found.library.is_some() && found.config.is_none() {
            bail!(
                "{REPLACEMENT} names another Geyser plugin, whose configuration is its own: name a template of it by \
                 {CONFIG}, with {{{{libpath}}}} and {{{{address}}}} where the library and the address belong"
            );
        }
        Ok(found)
    }

    /// Hands it on: tests and the local chain run in other folders than the one it was named in.
    pub fn hand_on(&self, command: &mut Command) {
        for (variable, file) in [(REPLACEMENT, &self.library), (CONFIG, &self.config)] {
            if let Some(file) = file {
                command.env(variable, file);
            }
        }
    }
}

/// Stops where a plugin would crash the validator that loads it. A stripped library may not say what built it.
fn check_replacement(library: &Path, pinned: &str) -> Result<()> {
    match compiler::commit_in(&fs::read(library)?) {
        Some(found) if found != pinned => bail!(
            "{REPLACEMENT} names {}, which was built by rustc {found}, needed is {pinned}\n\n\
             The validator loads the plugin as a library and calls Rust functions in it. Rust's calling convention\n\
             and layouts differ between compilers, so a plugin of another rustc crashes the validator.",
            library.display()
        ),
        _ => Ok(()),
    }
}

/// Builds our plugin unless another is to be loaded.
pub fn provide(repo: &Repo, replacement: &Replacement) -> Result<()> {
    match &replacement.library {
        Some(library) => {
            say!("==> Geyser plugin: {}", library.display());
            Ok(())
        }
        None => build(repo),
    }
}

/// Builds and publishes the plugin. The compiler check comes before.
pub fn build(repo: &Repo) -> Result<()> {
    let step = Step::begin(
        repo,
        "plugin",
        "Building the Geyser plugin",
        "the validator loads it, and it serves the chain's account and transaction stream over gRPC",
        "a minute from nothing, seconds after an edit",
    )?;
    step.run(&mut Workspace::plugin(repo).cargo(repo, &["build", "--locked"]))?;
    let built = repo.target().join("debug/libsluice_geyser_plugin.so");
    publish(&built, &repo.plugin())?;
    step.done();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_file::{self, LockedPackage};

    fn found(library: Option<&str>, config: Option<&str>) -> Result<Replacement> {
        Replacement::find_with(|name| {
            let named = if name == REPLACEMENT { library } else { config };
            named.map(OsString::from)
        })
    }

    #[test]
    fn relative_paths_become_absolute_and_empty_ones_are_none() {
        let found_both = found(Some("Cargo.toml"), Some("Cargo.toml"));
        let Replacement { library, config } = found_both.expect("tests run in the crate's folder");
        assert!(library.is_some_and(|file| file.is_absolute()));
        assert!(config.is_some_and(|file| file.is_absolute()));
        assert_eq!(
            found(Some(""), None).expect("unset"),
            Replacement::default()
        );
    }

    #[test]
    fn refuses_what_is_no_file_and_a_plugin_without_its_configuration() {
        let error = found(Some("/no/such.so"), Some("Cargo.toml")).expect_err("not there");
        assert!(error.to_string().contains("GEYSER_SO names /no/such.so"));
        let error = found(None, Some("/no/such.json")).expect_err("not there");
        assert!(
            error
                .to_string()
                .contains("GEYSER_CONFIG names /no/such.json")
        );
        let error = found(Some("Cargo.toml"), None).expect_err("whose configuration?");
        assert!(error.to_string().contains("{{address}}"), "{error}");
    }

    #[test]
    fn refuses_a_plugin_of_another_compiler() {
        let other = "ac68faa20c58cbccd01ee7208bf3b6e93a7d7f96";
        let pinned = "59807616e1fa2540724bfbac14d7976d7e4a3860";
        let file = env::temp_dir().join(format!("xtask-plugin-{}", std::process::id()));
        fs::write(&file, format!("/rustc/{other}/library/core")).expect("writable");
        let error = check_replacement(&file, pinned).expect_err("another compiler");
        assert!(check_replacement(&file, other).is_ok());
        fs::remove_file(&file).expect("ours");
        let text = error.to_string();
        assert!(text.contains(other) && text.contains(pinned), "{text}");
    }

    /// What crosses the boundary to the validator, and so is locked as there.
    const OF_THE_VALIDATOR: [&str; 5] = ["agave-", "solana-", "spl-", "wincode", "log"];

    /// A lock file of the repository.
    fn lock(file: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::read_to_string(root.join(file)).expect(file)
    }

    /// The part of a version that does not change as long as what depends on it goes on to compile.
    fn compatible(version: &str) -> &str {
        let leading = version
            .split('.')
            .take_while(|number| *number == "0")
            .count();
        let ends = version.match_indices('.').map(|(at, _)| at);
        ends.chain([version.len()])
            .nth(leading)
            .map_or(version, |end| &version[..end])
    }

    #[test]
    fn the_plugin_is_locked_to_the_versions_of_the_root_workspace_so_that_both_share_a_build() {
        let (root, plugin) = (lock("Cargo.lock"), lock("geyser-plugin/Cargo.lock"));
        let root: Vec<_> = lock_file::packages(&root).collect();
        let plugin: Vec<_> = lock_file::packages(&plugin).collect();
        assert!(plugin.len() > 200, "{} packages", plugin.len());
        let differs = |locked: &LockedPackage<'_>| {
            let in_root = root.iter().filter(|other| other.name == locked.name);
            let mut versions = in_root.map(|other| other.version);
            let mut alike = versions.clone().map(compatible);
            alike.any(|version| version == compatible(locked.version))
                && versions.all(|version| version != locked.version)
        };
        let of_the_validator = |name: &str| {
            let is_it = |part: &str| name == part || part.ends_with('-') && name.starts_with(part);
            OF_THE_VALIDATOR.into_iter().any(is_it)
        };
        let ours = plugin
            .iter()
            .filter(|locked| !of_the_validator(locked.name));
        let differing = ours.filter(|locked| differs(locked));
        let differing: Vec<_> = differing
            .map(|locked| (locked.name, locked.version))
            .collect();
        assert!(
            differing.is_empty(),
            "geyser-plugin/Cargo.lock has other versions than Cargo.lock: {differing:?}; `cargo update --manifest-path geyser-plugin/Cargo.toml NAME --precise VERSION`"
        );
        assert_eq!(
            ["1.2.3", "0.2.3", "0.0.3"].map(compatible),
            ["1", "0.2", "0.0.3"]
        );
    }
}
