//! Each rule sees its violation, on small trees written for it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::matrix::rows;
use super::packages::{self, Package};
use super::rooms::{Own, ROOMS};
use super::{bans, circles, matrix, outside, rooms, unused};

/// A repository in the temporary folder.
struct Fabricated {
    root: PathBuf,
    packages: Vec<Value>,
}

impl Fabricated {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = env::temp_dir().join(format!("xtask-imports-{}-{number}", process::id()));
        Self {
            root,
            packages: Vec::new(),
        }
    }

    /// Adds a package: its dependencies by folder and kind, and its files, of which the first is the library's root.
    fn with(
        mut self,
        folder: &str,
        dependencies: &[(&str, Value)],
        files: &[(&str, &str)],
    ) -> Self {
        let at = self.root.join(folder);
        for (file, source) in files {
            let file = at.join(file);
            fs::create_dir_all(file.parent().expect("below the root")).expect("writable");
            fs::write(file, source).expect("writable");
        }
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(folder, kind)| {
                json!({"name": name(folder), "kind": kind, "rename": null, "path": self.root.join(folder)})
            })
            .collect();
        let target = |(file, _): &(&str, &str)| json!({"kind": ["lib"], "src_path": at.join(file)});
        let targets: Vec<_> = files.iter().take(1).map(target).collect();
        self.packages.push(json!({
            "name": name(folder), "manifest_path": at.join("Cargo.toml"),
            "dependencies": dependencies, "targets": targets,
        }));
        self
    }

    fn packages(&self) -> Vec<Package> {
        let metadata = json!({"packages": self.packages});
        packages::read(&self.root, &metadata).expect("what was written")
    }

    fn see(&self, rule: impl FnOnce(&[Package]) -> Vec<String>) -> Vec<String> {
        let root = format!("{}/", self.root.display());
        let found = rule(&self.packages());
        found.iter().map(|one| one.replace(&root, "")).collect()
    }
}

impl Drop for Fabricated {
    fn drop(&mut self) {
        // What is left behind lies in the temporary folder.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A package's name: its folder's, with hyphens only.
fn name(folder: &str) -> String {
    folder.replace('/', "-")
}

fn depends(who: &str, whom: &str, kind: Value) -> Vec<String> {
    let repo = Fabricated::new().with(who, &[(whom, kind)], &[]);
    repo.see(matrix::violations)
}

#[test]
fn strangers_to_a_row_are_seen_whatever_the_kind() {
    for row in rows() {
        for kind in [json!(null), json!("dev"), json!("build")] {
            let seen = depends("crates/stranger", row.of, kind);
            let why = format!("depends on {}, which it may not import", name(row.of));
            assert_eq!(seen, [format!("crates/stranger/Cargo.toml: {why}")]);
        }
    }
}

#[test]
fn what_a_row_names_may_be_imported_by_products_and_only_tested_with_by_others() {
    for row in rows() {
        for who in &row.products {
            assert_eq!(
                depends(who, row.of, json!(null)),
                [""; 0],
                "{who} {}",
                row.of
            );
        }
        for who in row.tests.iter().filter(|who| !row.products.contains(who)) {
            assert_eq!(
                depends(who, row.of, json!("dev")),
                [""; 0],
                "{who} {}",
                row.of
            );
            let seen = depends(who, row.of, json!(null));
            let expected = usize::from(!who.starts_with("tests/"));
            assert_eq!(seen.len(), expected, "{who} {}: {seen:?}", row.of);
        }
    }
}

#[test]
fn a_package_without_a_row_is_imported_by_none() {
    let seen = depends("tests/bench", "xtask", json!("dev"));
    let expected =
        "tests/bench/Cargo.toml: nothing may depend on xtask, which has no row in the matrix";
    assert_eq!(seen, [expected]);
}

#[test]
fn a_ban_that_is_missing_or_too_wide_is_seen() {
    let repo = Fabricated::new()
        .with("api", &[], &[])
        .with("localnet", &[], &[]);
    let see = |deny: &str| repo.see(|packages| bans::violations(packages, deny));
    let good = "    { crate = \"api\", wrappers = [], reason = \"\" },\n    { crate = \"localnet\", reason = \"\" },";
    assert_eq!(see(good), [""; 0]);
    let missing = see("{ crate = \"api\", wrappers = [] },");
    assert_eq!(
        missing,
        ["deny.toml: no entry says who may import localnet"]
    );
    let wide = see(&good.replace("wrappers = []", "wrappers = [\"localnet\", \"gone\"]"));
    let expected = ["gone", "localnet"].map(|one| format!("deny.toml: {one} may not import api"));
    assert_eq!(wide, expected);
}

#[test]
fn a_dependent_that_a_ban_forgets_is_seen_whatever_the_kind() {
    let deny = |wrappers: &str| format!("{{ crate = \"api\", wrappers = [{wrappers}] }},");
    for kind in [json!(null), json!("dev"), json!("build")] {
        let repo = Fabricated::new().with("api", &[], &[]).with(
            "crates/cli",
            &[("api", kind), ("unbanned", json!(null))],
            &[],
        );
        let see = |deny: &str| repo.see(|packages| bans::violations(packages, deny));
        assert_eq!(see(&deny("\"crates-cli\"")), [""; 0]);
        assert_eq!(
            see(&deny("")),
            ["deny.toml: crates-cli depends on api, which its row does not name"]
        );
    }
}

#[test]
fn a_dependency_that_no_code_of_its_kind_names_is_seen() {
    let source = "use named::A; #[serde(with = \"texted::b\")] struct B(inline::C);\n\
                  #[cfg(test)] mod tests { use tested::D; }";
    let normal = ["named", "texted", "inline", "tested", "gone"].map(|name| (name, json!(null)));
    let repo = Fabricated::new().with("one", &normal, &[("src/lib.rs", source)]);
    let expected = ["tested", "gone"]
        .map(|name| format!("one/Cargo.toml: no code outside tests names {name}"));
    assert_eq!(repo.see(unused::violations), expected);

    let dev = ["named", "tested"].map(|name| (name, json!("dev")));
    let repo = Fabricated::new().with("one", &dev, &[("src/lib.rs", source)]);
    assert_eq!(
        repo.see(unused::violations),
        ["one/Cargo.toml: no test names named"]
    );

    let repo = Fabricated::new().with("tests/one", &normal, &[("src/lib.rs", source)]);
    assert_eq!(
        repo.see(unused::violations),
        ["tests/one/Cargo.toml: no code of it names gone"]
    );
}

/// The files of a library with these modules, the root first, each with its source.
fn library(modules: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut files = BTreeMap::from([(String::new(), String::new())]);
    for (module, source) in modules {
        let mut above = String::new();
        for name in module.split("::").filter(|name| !name.is_empty()) {
            let declaration = format!("pub mod {name};");
            let text: &mut String = files.entry(above.clone()).or_default();
            if !text.contains(&declaration) {
                text.push_str(&declaration);
            }
            above = format!("{above}/{name}");
        }
        files.entry(above).or_default().push_str(source);
    }
    let file = |path: String| {
        if path.is_empty() {
            "src/lib.rs".to_owned()
        } else {
            format!("src{path}.rs")
        }
    };
    files
        .into_iter()
        .map(|(path, text)| (file(path), text))
        .collect()
}

fn see_rooms(package: &str, modules: &[(&str, &str)]) -> Vec<String> {
    let files = library(modules);
    let files: Vec<_> = files
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()))
        .collect();
    Fabricated::new()
        .with(package, &[], &files)
        .see(rooms::violations)
}

#[test]
fn each_word_that_a_room_forbids_is_seen_outside_its_tests() {
    for (room, module) in ROOMS
        .iter()
        .flat_map(|room| room.modules().map(move |one| (room, one)))
    {
        let module = module.replace('*', "any");
        for word in room.words() {
            let used = format!("fn f() {{ {} }}", word.replace('*', "any"));
            let seen = see_rooms(room.package, &[(&module, &used)]);
            let expected = format!("{word} has no place here");
            assert!(
                seen.iter().any(|one| one.ends_with(&expected)),
                "{word}: {seen:?}"
            );
            let tested = format!("// {word}\n#[cfg(test)] {used}");
            assert_eq!(
                see_rooms(room.package, &[(&module, &tested)]),
                [""; 0],
                "{word}"
            );
        }
    }
}

/// What is seen when the module `who` of a package names something of its module `whom`.
fn imports(package: &str, who: &str, whom: &str) -> Vec<String> {
    let import = format!("use crate::{whom}::Thing;");
    see_rooms(package, &[(who, &import), (whom, "pub struct Thing;")])
}

#[test]
fn each_import_that_a_room_forbids_is_seen() {
    for (room, module) in ROOMS
        .iter()
        .flat_map(|room| room.modules().map(move |one| (room, one)))
    {
        let who = module.replace('*', "one");
        match &room.own {
            Own::Anything => {}
            Own::Only(allowed) => {
                assert_eq!(imports(room.package, &who, "other").len(), 1, "{who}");
                for whom in *allowed {
                    assert_eq!(imports(room.package, &who, whom), [""; 0], "{who}");
                }
            }
            Own::Not(forbidden) => {
                for whom in *forbidden {
                    assert_eq!(imports(room.package, &who, whom).len(), 1, "{who} {whom}");
                }
                assert_eq!(imports(room.package, &who, "other"), [""; 0], "{who}");
            }
            Own::NoSibling(pairs) => {
                let sibling = module.replace('*', "two");
                assert_eq!(imports(room.package, &who, &sibling).len(), 1, "{who}");
                for (who, whom) in *pairs {
                    let at = |name: &str| module.replace('*', name);
                    assert_eq!(imports(room.package, &at(who), &at(whom)), [""; 0]);
                    assert_eq!(imports(room.package, &at(whom), &at(who)).len(), 1);
                }
            }
        }
    }
}

#[test]
fn an_import_is_seen_through_re_exports() {
    let files = [
        ("src/lib.rs", "mod slots; mod run; pub use run::*;"),
        ("src/slots.rs", "fn f() { crate::start() }"),
        ("src/run.rs", "pub fn start() {}"),
    ];
    let repo = Fabricated::new().with("indexer", &[], &files);
    let expected = "indexer/src/slots.rs:1: slots may not import run";
    assert_eq!(repo.see(rooms::violations), [expected]);
}

#[test]
fn a_file_of_another_package_is_seen() {
    let files = [
        (
            "src/lib.rs",
            "#[path = \"../own.rs\"] mod own; #[cfg(test)]\n#[path = \"../../two/other.rs\"] mod other;",
        ),
        ("own.rs", ""),
        ("../two/other.rs", ""),
    ];
    let repo = Fabricated::new().with("one", &[], &files);
    let seen = repo.see(|packages| outside::violations(&repo.root, packages));
    assert_eq!(
        seen,
        ["one/src/lib.rs:2: ../../two/other.rs belongs to another package"]
    );
}

#[test]
fn a_circle_is_seen_and_a_child_that_uses_its_parent_is_none() {
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c;"),
        ("src/a.rs", "mod inner; use crate::b; struct A;"),
        (
            "src/a/inner.rs",
            "use super::A; #[cfg(test)] use crate::c::C;",
        ),
        ("src/b.rs", "pub use super::c::C;"),
        ("src/c.rs", "pub struct C; fn f() { crate::a::A }"),
    ];
    let see = |files: &[(&str, &str)]| {
        let repo = Fabricated::new().with("one", &[], files);
        repo.see(circles::violations)
    };
    let circle = ["a", "b", "c", "a"]
        .map(|file| format!("one/src/{file}.rs"))
        .join(" -> ");
    assert_eq!(see(&files), [format!("a circle of imports: {circle}")]);
    let mut without = files;
    without[4].1 = "pub struct C;";
    assert_eq!(see(&without), [""; 0]);
}
