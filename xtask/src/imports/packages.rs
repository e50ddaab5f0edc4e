//! The packages of a workspace, as `cargo metadata --no-deps` describes them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::tree::Tree;
use crate::command::capture;
use crate::repo::Repo;
use crate::workspaces::Workspace;

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Normal,
    Dev,
    Build,
}

/// One line of a manifest.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub package: String,
    /// As the source names it.
    pub name: String,
    pub used: Use,
    /// Folder of a dependency that lies in this repository, from its root.
    pub folder: Option<String>,
}

/// A crate of a package: its library, a program, a test.
#[derive(Debug)]
pub struct Target {
    pub is_build_script: bool,
    pub tree: Tree,
}

/// One package.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    /// From the root of the repository.
    pub folder: String,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
}

impl Package {
    /// Whether it lies below `tests/`, where all code is test code and any kind of dependency will do.
    pub fn is_test(&self) -> bool {
        self.folder.starts_with("tests/") || self.folder == "tests"
    }
}

/// The packages of one workspace, with their sources.
pub fn of_workspace(repo: &Repo, workspace: &Workspace) -> Result<Vec<Package>> {
    let words = ["metadata", "--no-deps", "--format-version", "1"];
    let text = capture(&mut workspace.cargo(repo, &words))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata printed no JSON")?;
    read(repo.root(), &metadata)
}

/// Reads what cargo printed, and the sources that it names.
pub fn read(root: &Path, metadata: &Value) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array();
    packages
        .context("cargo metadata lists no packages")?
        .iter()
        .map(|package| package_of(root, package))
        .collect()
}

fn package_of(root: &Path, package: &Value) -> Result<Package> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    let folder = manifest.parent().context("a manifest stands in a folder")?;
    let dependencies = list(package, "dependencies")?
        .iter()
        .map(|dependency| dependency_of(root, dependency))
        .collect::<Result<_>>()?;
    let targets = list(package, "targets")?
        .iter()
        .map(|target| target_of(target, folder.starts_with(root.join("tests"))))
        .collect::<Result<_>>()?;
    Ok(Package {
        name: text(package, "name")?.to_owned(),
        folder: below(root, folder),
        dependencies,
        targets,
    })
}

fn dependency_of(root: &Path, dependency: &Value) -> Result<Dependency> {
    let package = text(dependency, "name")?;
    let name = dependency["rename"].as_str().unwrap_or(package);
    let used = match dependency["kind"].as_str() {
        Some("dev") => Use::Dev,
        Some("build") => Use::Build,
        _ => Use::Normal,
    };
    Ok(Dependency {
        package: package.to_owned(),
        name: name.replace('-', "_"),
        used,
        folder: dependency["path"]
            .as_str()
            .map(|path| below(root, Path::new(path))),
    })
}

/// Of a package of tests all code counts as code, because there is no other.
fn target_of(target: &Value, of_tests: bool) -> Result<Target> {
    let kinds = list(target, "kind")?;
    let is = |wanted: &[&str]| {
        kinds
            .iter()
            .any(|kind| wanted.iter().any(|one| kind == one))
    };
    let file = PathBuf::from(text(target, "src_path")?);
    Ok(Target {
        is_build_script: is(&["custom-build"]),
        tree: Tree::read(&file, !of_tests && is(&["test", "bench", "example"]))?,
    })
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    let text = value[field].as_str();
    text.with_context(|| format!("cargo metadata has no {field}"))
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    let list = value[field].as_array();
    list.with_context(|| format!("cargo metadata has no {field}"))
}
