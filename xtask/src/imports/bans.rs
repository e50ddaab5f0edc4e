//! The bans of `deny.toml` on our own crates, compared with the matrix.

use std::collections::{BTreeMap, BTreeSet};

use super::matrix::row_of;
use super::packages::Package;

/// Rows of the matrix that `deny.toml` lacks, wrappers that the matrix does not name, and dependents that a row forgets.
pub fn violations(packages: &[Package], deny: &str) -> Vec<String> {
    let bans = bans(deny);
    let folders: BTreeMap<_, _> = packages
        .iter()
        .map(|one| (one.name.as_str(), one.folder.as_str()))
        .collect();
    let mut found = forgotten(packages, &bans);
    for package in packages {
        let Some(row) = row_of(&package.folder) else {
            continue;
        };
        let Some(wrappers) = bans.get(package.name.as_str()) else {
            found.push(format!(
                "deny.toml: no entry says who may import {}",
                package.name
            ));
            continue;
        };
        for wrapper in wrappers {
            let is_named = folders.get(wrapper).is_some_and(|folder| row.names(folder));
            if !is_named {
                found.push(format!(
                    "deny.toml: {wrapper} may not import {}",
                    package.name
                ));
            }
        }
    }
    found
}

/// Dependents that the row of their dependency does not name: cargo-deny refuses them, whatever the dependency is for.
fn forgotten(packages: &[Package], bans: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for Package {
        name, dependencies, ..
    } in packages
    {
        for dependency in dependencies {
            let on = dependency.package.as_str();
            let is_banned = |wrappers: &BTreeSet<_>| !wrappers.contains(name.as_str());
            if bans.get(on).is_some_and(is_banned) {
                found.insert(format!(
                    "deny.toml: {name} depends on {on}, which its row does not name"
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// Reads the entries of `deny`, each on a line of its own: `{ crate = "a", wrappers = ["b", "c"], .. }`.
fn bans(deny: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    deny.lines()
        .filter_map(|line| {
            let entry = line.trim().strip_prefix("{ crate = \"")?;
            let (name, rest) = entry.split_once('"')?;
            let wrappers = rest
                .split_once("wrappers = [")
                .and_then(|(_, rest)| rest.split_once(']'));
            let names = wrappers
                .map_or("", |(names, _)| names)
                .split('"')
                .skip(1)
                .step_by(2);
            Some((name, names.collect()))
        })
        .collect()
}
