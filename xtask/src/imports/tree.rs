//! The module tree of a crate, and which file a path leads to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{self, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::source::{Contents, Path, Source};

/// Most re-exports that are followed from one name, so that two which name each other end.
const FOLLOWED: usize = 16;

/// One file of a crate.
#[derive(Debug)]
pub struct Module {
    /// From the crate's root, which has none: `["store", "rows"]`.
    pub path: Vec<String>,
    pub file: PathBuf,
    pub source: Source,
    children: BTreeMap<String, usize>,
    parent: usize,
}

/// The files of one crate; the first is its root.
#[derive(Debug)]
pub struct Tree {
    pub modules: Vec<Module>,
}

impl Tree {
    /// Reads the crate whose root is `file`; everything in it is test code if `is_test`.
    pub fn read(file: &path::Path, is_test: bool) -> Result<Self> {
        let mut tree = Self {
            modules: Vec::new(),
        };
        let folder = file.parent().unwrap_or(file).to_owned();
        tree.add(file.to_owned(), &folder, Vec::new(), 0, is_test)?;
        Ok(tree)
    }

    /// Adds a file and all below it. `folder` is where the files of its modules are.
    fn add(
        &mut self,
        file: PathBuf,
        folder: &path::Path,
        path: Vec<String>,
        parent: usize,
        is_test: bool,
    ) -> Result<usize> {
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read the module {}", file.display()))?;
        let source = Source::read(&text, is_test)
            .map_err(|error| anyhow!("{} is no Rust: {error}", file.display()))?;
        let of_code = source.code.declarations.iter().map(|one| (one, is_test));
        let of_tests = source.tests.declarations.iter().map(|one| (one, true));
        let declarations: Vec<_> = of_code
            .chain(of_tests)
            .map(|(one, is_test)| (one.clone(), is_test))
            .collect();
        let index = self.modules.len();
        self.modules.push(Module {
            path,
            file: file.clone(),
            source,
            children: BTreeMap::new(),
            parent,
        });
        for (declaration, is_test) in declarations {
            let below: PathBuf = folder.join(declaration.names.iter().collect::<PathBuf>());
            let (child, folder) = match &declaration.at {
                Some(at) => {
                    let child = file.parent().unwrap_or(folder).join(at);
                    let folder = child.parent().unwrap_or(folder).to_owned();
                    (child, folder)
                }
                None if below.with_extension("rs").is_file() => (below.with_extension("rs"), below),
                None => (below.join("mod.rs"), below),
            };
            let mut path = self.modules[index].path.clone();
            path.extend(declaration.names.iter().cloned());
            let child = self.add(child, &folder, path, index, is_test)?;
            let name = declaration.names.last().cloned().unwrap_or_default();
            self.modules[index].children.insert(name, child);
        }
        Ok(index)
    }

    /// The file that defines what `path` names, re-exports followed; `None` when that is another crate. `from` is the file
    /// in which the path stands.
    pub fn resolve(&self, from: usize, path: &Path) -> Option<usize> {
        self.follow(from, path, FOLLOWED)
    }

    fn follow(&self, from: usize, path: &Path, left: usize) -> Option<usize> {
        let (mut at, mut used) = (from, 0);
        for segment in &path.segments {
            match segment.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.modules[at].parent,
                _ => break,
            }
            used += 1;
        }
        let rest = &path.segments[used..];
        if used > 0 {
            return self.walk(at, rest, left);
        }
        let first = rest.first()?;
        match self.modules[at].children.get(first) {
            Some(child) => self.walk(*child, &rest[1..], left),
            None => self.imported(at, rest, left)?,
        }
    }

    /// Goes down from a module by the names of its modules, items and imports.
    fn walk(&self, at: usize, segments: &[String], left: usize) -> Option<usize> {
        let Some((first, rest)) = segments.split_first() else {
            return Some(at);
        };
        let module = &self.modules[at];
        if let Some(child) = module.children.get(first) {
            return self.walk(*child, rest, left);
        }
        if module.code().items.contains(first) {
            return Some(at);
        }
        self.imported(at, segments, left).unwrap_or(Some(at))
    }

    /// Follows the import of `at` that brings the first segment in. The outer `None` says that there is none.
    fn imported(&self, at: usize, segments: &[String], left: usize) -> Option<Option<usize>> {
        let left = left.checked_sub(1)?;
        let (first, rest) = segments.split_first()?;
        let imports = &self.modules[at].code().imports;
        if let Some(import) = imports.iter().find(|one| one.name.as_ref() == Some(first)) {
            let mut path = import.path.clone();
            // `use name;` names another crate; followed, it would lead to itself.
            if path.segments.len() == 1 {
                return Some(None);
            }
            path.segments.extend(rest.iter().cloned());
            return Some(self.follow(at, &path, left));
        }
        let globs = imports.iter().filter(|import| import.name.is_none());
        globs
            .filter_map(|import| self.follow(at, &import.path, left))
            .filter(|module| *module != at && self.modules[*module].brings(first))
            .map(|module| self.walk(module, segments, left))
            .next()
    }
}

impl Module {
    /// What is compiled outside tests.
    pub fn code(&self) -> &Contents {
        &self.source.code
    }

    /// Whether a name can be found here.
    fn brings(&self, name: &String) -> bool {
        let imports = &self.code().imports;
        self.children.contains_key(name)
            || self.code().items.contains(name)
            || imports
                .iter()
                .any(|import| import.name.as_ref() == Some(name))
    }
}
