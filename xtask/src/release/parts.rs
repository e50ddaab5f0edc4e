//! Parts of the program: the packages that are linked into it, as the lock file and their manifests name them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::capture;
use crate::lock_file;
use crate::repo::Repo;
use crate::workspaces::Workspace;

/// What the program runs on.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The package of the program.
const ROOT: &str = "sluice";

/// One package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    pub name: String,
    pub version: String,
    /// By SPDX, as its manifest says; absent where that names a file instead.
    pub licence: Option<String>,
    /// Of the package's file in the registry; absent for what lies in this repository.
    pub checksum: Option<String>,
    /// Where its files are.
    pub folder: PathBuf,
    /// What it is linked with, by [`Part::purl`].
    pub uses: Vec<String>,
}

/// All of them, in order of their names.
#[derive(Debug)]
pub struct Parts {
    pub version: String,
    pub all: Vec<Part>,
}

impl Part {
    /// Its name across tools.
    pub fn purl(&self) -> String {
        purl(&self.name, &self.version)
    }
}

fn purl(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

impl Parts {
    pub fn read(repo: &Repo) -> Result<Self> {
        let words = [
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            PLATFORM,
        ];
        let text = capture(&mut Workspace::root(repo).cargo(repo, &words))?;
        let metadata: Value =
            serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
        let lock =
            fs::read_to_string(repo.root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
        of(&metadata, &checksums(&lock)).context("cargo metadata does not describe the program")
    }
}

/// The checksums of a lock file, by [`Part::purl`].
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let checksums = lock_file::packages(lock).filter_map(|package| {
        let purl = purl(package.name, package.version);
        Some((purl, package.checksum?.to_owned()))
    });
    checksums.collect()
}

fn of(metadata: &Value, checksums: &BTreeMap<String, String>) -> Option<Parts> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let (root, package) = packages
        .iter()
        .find(|(_, package)| package["name"] == ROOT)?;
    let version = package["version"].as_str()?.to_owned();
    let mut linked = BTreeSet::new();
    let mut next = vec![*root];
    while let Some(id) = next.pop() {
        if linked.insert(id) {
            next.extend(linked_with(nodes.get(id)?));
        }
    }
    let all = linked.iter().map(|id| {
        let uses = linked_with(nodes.get(id)?);
        let uses = uses.filter_map(|id| part_name(packages.get(id)?)).collect();
        part(packages.get(id)?, uses, checksums)
    });
    let mut all = all.collect::<Option<Vec<_>>>()?;
    all.sort();
    Some(Parts { version, all })
}

/// The packages that one is linked with: neither those of its tests nor those that only build it.
fn linked_with(node: &Value) -> impl Iterator<Item = &str> {
    let all = node["deps"].as_array().into_iter().flatten();
    let normal = all.filter(|dependency| {
        let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
        kinds.any(|kind| kind["kind"].is_null())
    });
    normal.filter_map(|dependency| dependency["pkg"].as_str())
}

fn part_name(package: &Value) -> Option<String> {
    Some(purl(
        package["name"].as_str()?,
        package["version"].as_str()?,
    ))
}

fn part(package: &Value, uses: Vec<String>, checksums: &BTreeMap<String, String>) -> Option<Part> {
    let manifest = PathBuf::from(package["manifest_path"].as_str()?);
    let name = part_name(package)?;
    Some(Part {
        name: package["name"].as_str()?.to_owned(),
        version: package["version"].as_str()?.to_owned(),
        licence: package["license"].as_str().map(str::to_owned),
        // A package of this repository may be called as one of the registry is.
        checksum: package["source"]
            .as_str()
            .and_then(|_| checksums.get(&name).cloned()),
        folder: manifest.parent()?.to_path_buf(),
        uses,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_linked_is_found_and_what_only_builds_or_tests_is_not() {
        let package = |name: &str, source: Value| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source,
                   "manifest_path": format!("/at/{name}/Cargo.toml")})
        };
        let uses = |pkg: &str, kinds: Value| json!({"pkg": pkg, "dep_kinds": kinds});
        let normal = json!([{"kind": null}]);
        let metadata = json!({
            "packages": [package("sluice", Value::Null), package("linked", json!("registry")),
                         package("below", json!("registry")), package("builds", json!("registry"))],
            "resolve": {"nodes": [
                {"id": "sluice", "deps": [uses("linked", json!([{"kind": "dev"}, {"kind": null}])),
                                          uses("builds", json!([{"kind": "build"}]))]},
                {"id": "linked", "deps": [uses("below", normal)]},
                {"id": "below", "deps": []},
                {"id": "builds", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"below\"\nversion = \"1.0.0\"\nsource = \"r\"\nchecksum = \"ab\"\n\n\
                    [[package]]\nname = \"sluice\"\nversion = \"1.0.0\"\n";
        let parts = of(&metadata, &checksums(lock)).expect("well-formed");
        let names: Vec<&str> = parts.all.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["below", "linked", "sluice"]);
        assert_eq!(parts.all[0].checksum.as_deref(), Some("ab"));
        assert_eq!(parts.all[2].uses, ["pkg:cargo/linked@1.0.0"]);
    }
}
