//! `cargo xtask`: sets up, builds, tests and runs everything in this repository.
//!
//! The repository holds five Cargo workspaces with a lock file each. This crate drives them by running commands; it
//! imports nothing of them. One file per command, or per part that commands share.

#![deny(clippy::print_stdout)]

mod apt_sources;
mod bench;
mod binaries;
mod build;
mod cache;
mod clean_tools;
mod clients;
mod command;
mod compiler;
mod debian_tool;
mod deny;
mod deployment;
mod exchange;
mod faketime;
mod fetch;
mod generated;
mod guard_tests;
mod head_start;
mod idl;
mod imports;
mod lint;
mod linted_build;
mod localnet;
mod lock_file;
mod miri;
mod mutants;
mod nextest;
mod openapi;
mod output;
mod packages;
mod plugin;
mod postgres;
mod private_apt;
mod programs;
mod prove;
mod publish;
mod registry_tool;
mod release;
mod repo;
mod sanitizer;
mod sbf;
mod step;
mod system_packages;
mod test;
mod trial;
mod validator;
mod workspaces;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::cache::Cache;
use crate::repo::Repo;

/// Sets up, builds, tests and runs Sluice. Every command sets up what it needs; a second run repeats nothing that is good.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about,
    after_help = "Examples:\n  cargo xtask localnet --demo\n  cargo xtask test"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run Sluice beside a real local chain until Ctrl-C.
    #[command(
        after_help = "Examples:\n  cargo xtask localnet\n  cargo xtask localnet --demo\n  cargo xtask localnet -- --api-port 9000"
    )]
    Localnet {
        /// Run the main job once, show each step with its figures, and end.
        #[arg(long)]
        demo: bool,
        /// Further arguments for sluice-localnet.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        extra: Vec<OsString>,
    },
    /// Run every check and every test, the end-to-end one included.
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test on-chain")]
    Test {
        /// Only these parts; without any, everything.
        #[arg(value_enum)]
        parts: Vec<test::Part>,
    },
    /// Swap with the tools that integrators use, in JavaScript and Python, and fuzz the API.
    #[command(after_help = "Examples:\n  cargo xtask clients")]
    Clients,
    /// Download what tests take from npm and PyPI; afterwards they need no network for it.
    #[command(after_help = "Examples:\n  cargo xtask fetch")]
    Fetch,
    /// Build and test the TypeScript client, without a chain.
    #[command(after_help = "Examples:\n  cargo xtask typescript")]
    Typescript,
    /// Build the parts that live outside the root workspace.
    #[command(after_help = "Examples:\n  cargo xtask build\n  cargo xtask build plugin")]
    Build {
        #[arg(value_enum, default_value_t = build::Part::All)]
        part: build::Part,
    },
    /// Measure what the project promises about its costs; those of the guard are written into bench-report.json.
    #[command(
        after_help = "Examples:\n  cargo xtask bench guard\n  cargo xtask bench guard --check\n  cargo xtask bench quote"
    )]
    Bench {
        #[arg(value_enum)]
        subject: bench::Subject,
        /// Only compare the figures with the file.
        #[arg(long)]
        check: bool,
    },
    /// Write idls/swap_guard.json from the program.
    #[command(after_help = "Examples:\n  cargo xtask idl\n  cargo xtask idl --check")]
    Idl {
        /// Only compare the file with the program.
        #[arg(long)]
        check: bool,
    },
    /// Write openapi.json from the API.
    #[command(after_help = "Examples:\n  cargo xtask openapi\n  cargo xtask openapi --check")]
    Openapi {
        /// Only compare the file with the API.
        #[arg(long)]
        check: bool,
    },
    /// Compare random swaps as predicted by the arithmetic and as executed by the exchange's program.
    #[command(after_help = "Examples:\n  cargo xtask parity --cases 10000 --seed 7")]
    Parity {
        /// How many swaps.
        #[arg(long, default_value_t = 100_000)]
        cases: usize,
        /// Which row of swaps; the same seed gives the same row.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Remove or weaken one check of the guard at a time, and see that a test notices. Takes ten minutes.
    #[command(
        after_help = "Examples:\n  cargo xtask mutants\n  cargo xtask mutants --only minimum"
    )]
    Mutants {
        /// Only those whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Play random scripts in which streams, nodes and forks fail, through the market, against a model.
    #[command(after_help = "Examples:\n  cargo xtask faults --runs 200 --seed 7")]
    Faults {
        /// How many scripts.
        #[arg(long, default_value_t = 1_000)]
        runs: u64,
        /// Seed of the first script; the same seed gives the same script.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Kill indexers, dispatchers and databases at random, let hosts, networks, disks and clocks fail, while receivers misbehave,
    /// and count what webhooks receive.
    #[command(
        after_help = "Examples:\n  cargo xtask chaos --kills 50 --store sqlite\n  cargo xtask chaos --disasters power-loss,full-disk --seed 7"
    )]
    Chaos {
        /// How many kills on each database.
        #[arg(long, default_value_t = 200)]
        kills: u32,
        /// The same seed plays the same chain and draws the same kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// On which database.
        #[arg(long, value_enum, default_value_t = trial::Store::Both)]
        store: trial::Store,
        /// What befalls them between the kills, in this order, separated by commas: power-loss, partition, stopped, full-disk,
        /// clock-jump, failover, pooler; all of them when none is named.
        #[arg(long, value_delimiter = ',')]
        disasters: Vec<String>,
    },
    /// Cut streams and edit filters on a localnet, and count what was emitted and quoted against what the chain did.
    #[command(
        after_help = "Examples:\n  cargo xtask truth --seconds 600 --seed 7\n  cargo xtask truth --edits-per-second 10"
    )]
    Truth {
        /// How long faults are made.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The same seed draws the same faults.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Edit filters so often, and leave the indexer's stream alone: it must never be opened again.
        #[arg(long)]
        edits_per_second: Option<NonZeroU32>,
    },
    /// Prove that the compiled guard keeps its promises for every input, and write its certificate, proof.json.
    #[command(
        after_help = "Examples:\n  cargo xtask prove\n  cargo xtask prove --program dumped.so\n  cargo xtask prove --mutants --minutes 30"
    )]
    Prove {
        /// Another program file than the built guard, for example one dumped from a cluster.
        #[arg(long)]
        program: Option<PathBuf>,
        /// Change the built guard in every small way instead, and say of each change whether it is noticed.
        #[arg(long, conflicts_with = "program")]
        mutants: bool,
        /// When to stop with the mutants; a later run goes on with what is left.
        #[arg(long, default_value_t = 60, requires = "mutants")]
        minutes: u32,
    },
    /// Check licences, imports and sources of all dependencies.
    #[command(after_help = "Examples:\n  cargo xtask deny --install")]
    Deny {
        /// Build cargo-deny into the cache when it is not there.
        #[arg(long)]
        install: bool,
    },
    /// Check which packages and modules import which.
    #[command(after_help = "Examples:\n  cargo xtask imports")]
    Imports,
    /// Check alerts, unit, container file and manifests of deploy/.
    #[command(after_help = "Examples:\n  cargo xtask deployment")]
    Deployment,
    /// Make everything that is published, under target/release-artifacts: program, package, image, bill of materials, clients,
    /// manifests, alerts, dashboard, compose and container file.
    #[command(
        after_help = "Examples:\n  cargo xtask release\n  cargo xtask release --compare\n  cargo xtask release --check"
    )]
    Release {
        /// Build twice, the second time from another folder, and compare the bytes.
        #[arg(long)]
        compare: bool,
        /// Only check what needs no release build: the bill, the licences, the compose file, and a package with the program as tests have it.
        #[arg(long, conflicts_with = "compare")]
        check: bool,
    },
    /// Remove every downloaded or built tool from the cache.
    #[command(after_help = "Examples:\n  cargo xtask clean-tools")]
    CleanTools,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let repo = Repo::locate()?;
    let cache = Cache::open()?;
    match arguments.task {
        Task::Localnet { demo, extra } => match localnet::run(&repo, &cache, demo, &extra)? {},
        Task::Test { parts } => return Ok(test::run(&repo, &cache, &parts)),
        Task::Clients => clients::run(&repo, &cache)?,
        Task::Fetch => fetch::run(&repo)?,
        Task::Typescript => clients::typescript::run(&repo)?,
        Task::Build { part } => build::run(&repo, &cache, part)?,
        Task::Bench { subject, check } => bench::run(&repo, &cache, subject, check)?,
        Task::Idl { check: true } => idl::check(&repo)?,
        Task::Idl { check: false } => idl::write(&repo)?,
        Task::Openapi { check: true } => openapi::check(&repo)?,
        Task::Openapi { check: false } => openapi::write(&repo)?,
        Task::Parity { cases, seed } => trial::parity(&repo, &cache, cases, seed)?,
        Task::Mutants { only } => mutants::run(&repo, &cache, &only)?,
        Task::Faults { runs, seed } => trial::faults(&repo, runs, seed)?,
        Task::Chaos {
            kills,
            seed,
            store,
            disasters,
        } => trial::chaos(&repo, &cache, (kills, &disasters), seed, store)?,
        Task::Truth {
            seconds,
            seed,
            edits_per_second,
        } => trial::truth(&repo, &cache, seconds, seed, edits_per_second)?,
        Task::Prove {
            program,
            mutants,
            minutes,
        } => {
            if program.is_none() {
                programs::build(&repo, &cache)?;
            }
            if mutants {
                prove::mutants(&repo, minutes)?;
            } else {
                prove::run(&repo, program.as_deref())?;
            }
        }
        Task::Deny { install } => deny::run(&repo, &cache, install)?,
        Task::Imports => imports::check(&repo)?,
        Task::Deployment => {
            packages::require(
                &repo,
                deployment::packages_needed(),
                "The check of the unit",
            )?;
            deployment::check(&repo, &cache)?;
        }
        Task::Release { check: true, .. } => {
            packages::require(&repo, release::packages_needed(), "The trial of a package")?;
            binaries::build(&repo)?;
            release::check(&repo)?;
        }
        Task::Release { compare, .. } => release::run(&repo, compare)?,
        Task::CleanTools => clean_tools::run(&cache)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The examples of a command's help: the lines behind their title.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string);
        let text = text.unwrap_or_default();
        let lines = text.strip_prefix("Examples:\n").unwrap_or_default();
        lines.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn the_help_of_every_command_has_examples_that_it_takes() {
        let all = Arguments::command();
        let mut commands = vec![("cargo xtask", &all)];
        commands.extend(all.get_subcommands().map(|below| (below.get_name(), below)));
        for (name, command) in commands {
            let examples = examples(command);
            assert!(!examples.is_empty(), "{name} --help has no example");
            for example in examples {
                let words = example.strip_prefix("cargo ");
                let words = words.unwrap_or_else(|| panic!("{example} is no line of a shell"));
                let parsed = Arguments::try_parse_from(words.split(' '));
                assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn the_commands_that_the_readme_gives_to_be_pasted_are_taken() {
        let lines = include_str!("../../README.md").lines();
        let given: Vec<_> = lines
            .filter(|line| line.starts_with("cargo xtask "))
            .collect();
        assert!(given.len() >= 4, "{given:?}");
        for line in given {
            let (command, _) = line.split_once('#').unwrap_or((line, ""));
            let words = command.split_whitespace().skip(1);
            let parsed = Arguments::try_parse_from(words);
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
        }
    }
}
