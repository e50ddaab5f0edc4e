//! The module tree of a crate, and which file a path leads to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{self, PathBuf};

use anyhow::{Context, Result};

use super::paths::{Contents, Path, contents};
use super::tokens::{Token, split_tests, tokens};

/// Most re-exports that are followed from one name, so that two which name each other end.
const FOLLOWED: usize = 16;

/// One file of a crate.
#[derive(Debug)]
pub struct Module {
    /// From the crate's root, which has none: `["store", "rows"]`.
    pub path: Vec<String>,
    pub file: PathBuf,
    /// What runs outside tests.
    pub code: Vec<Token>,
    pub contents: Contents,
    /// What is compiled for tests alone; in a file of tests, all of it.
    pub tests: Vec<Token>,
    pub test_contents: Contents,
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
        let source = fs::read_to_string(&file)
            .with_context(|| format!("cannot read the module {}", file.display()))?;
        let all = tokens(&source);
        let (code, tests) = if is_test {
            (Vec::new(), all)
        } else {
            split_tests(all)
        };
        let index = self.modules.len();
        let module = Module {
            contents: contents(&code),
            test_contents: contents(&tests),
            path,
            file: file.clone(),
            code,
            tests,
            children: BTreeMap::new(),
            parent,
        };
        let declarations: Vec<_> = [(&module.contents, is_test), (&module.test_contents, true)]
            .into_iter()
            .flat_map(|(contents, is_test)| {
                let declarations = contents.declarations.iter().cloned();
                declarations.map(move |declaration| (declaration, is_test))
            })
            .collect();
        self.modules.push(module);
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
        let (mut at, mut inline, mut used) = (from, path.depth, 0);
        for segment in &path.segments {
            match segment.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" if inline > 0 => inline -= 1,
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
        if module.contents.items.contains(first) {
            return Some(at);
        }
        self.imported(at, segments, left).unwrap_or(Some(at))
    }

    /// Follows the import of `at` that brings the first segment in. The outer `None` says that there is none.
    fn imported(&self, at: usize, segments: &[String], left: usize) -> Option<Option<usize>> {
        let left = left.checked_sub(1)?;
        let (first, rest) = segments.split_first()?;
        let imports = &self.modules[at].contents.imports;
        if let Some(import) = imports.iter().find(|one| one.name.as_ref() == Some(first)) {
            let mut path = import.path.clone();
            // `use name;` names another crate; followed, it would lead to itself.
            if path.segments.len() == 1 {
                return Some(None);
            }
            path.segments.extend(rest.iter().cloned());
            return Some(self.follow(at, &path, left));
        }
        imports
            .iter()
            .filter(|import| import.name.is_none())
            .filter_map(|import| self.follow(at, &import.path, left))
            .filter(|module| *module != at)
            .find_map(|module| {
                let defines = &self.modules[module];
                let is_there = defines.contents.items.contains(first)
                    || defines.children.contains_key(first)
                    || defines
                        .contents
                        .imports
                        .iter()
                        .any(|import| import.name.as_ref() == Some(first));
                is_there.then(|| self.walk(module, segments, left))
            })
    }
}
