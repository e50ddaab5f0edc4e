//! Source files that a package takes from outside its folder.

use std::path::{Component, Path, PathBuf};

use super::packages::Package;

/// Each `#[path]` that leaves its package.
pub fn violations(root: &Path, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let folder = root.join(&package.folder);
        for tree in package.targets.iter().map(|target| &target.tree) {
            for module in &tree.modules {
                let contents = [&module.source.code, &module.source.tests];
                for declaration in contents.into_iter().flat_map(|one| &one.declarations) {
                    let Some(at) = &declaration.at else { continue };
                    let beside = module.file.parent().unwrap_or(root);
                    if !plain(&beside.join(at)).starts_with(&folder) {
                        let (file, line) = (module.file.display(), declaration.line);
                        found.push(format!("{file}:{line}: {at} belongs to another package"));
                    }
                }
            }
        }
    }
    found
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(component);
        }
    }
    plain
}
