//! Dependencies that the code they stand for never names.

use std::collections::BTreeSet;

use super::packages::{Package, Use};
use super::source::Contents;

/// Dependencies, by package, that are there for a feature of a crate that others bring in.
const FOR_FEATURES: [(&str, &str); 2] = [
    // Addresses that are derived from seeds and written as text in the source.
    ("programs/local-cpmm", "solana_address"),
    ("programs/test-hostile-exchange", "solana_address"),
];

/// Dependencies never named, and normal ones that tests alone name.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let named = Named::by(package);
        for dependency in &package.dependencies {
            let name = &dependency.name;
            let is_elsewhere_too = || {
                let mut others = package.dependencies.iter();
                others.any(|other| other.name == *name && other.used != dependency.used)
            };
            let of_tests = named.tests.contains(name);
            let (is_named, what) = match dependency.used {
                _ if package.is_test() => (named.code.contains(name) || of_tests, "no code of it"),
                Use::Normal => (named.code.contains(name), "no code outside tests"),
                // It may be there for a feature that the tests need.
                Use::Dev => (of_tests || is_elsewhere_too(), "no test"),
                Use::Build => (named.build.contains(name), "no build script"),
            };
            let package = &package.folder;
            if !is_named && !FOR_FEATURES.contains(&(package.as_str(), name.as_str())) {
                let dependency = &dependency.package;
                found.push(format!("{package}/Cargo.toml: {what} names {dependency}"));
            }
        }
    }
    found
}

/// Names that stand where another crate's name can.
#[derive(Default)]
struct Named {
    code: BTreeSet<String>,
    tests: BTreeSet<String>,
    build: BTreeSet<String>,
}

impl Named {
    fn by(package: &Package) -> Self {
        let mut named = Self::default();
        for target in &package.targets {
            for module in &target.tree.modules {
                let code = if target.is_build_script {
                    &mut named.build
                } else {
                    &mut named.code
                };
                collect(code, &module.source.code);
                collect(&mut named.tests, &module.source.tests);
            }
        }
        named
    }
}

fn collect(names: &mut BTreeSet<String>, contents: &Contents) {
    names.extend(contents.named().map(|path| path.segments[0].clone()));
    // As in `#[serde(with = "hex::serde")]`.
    let texts = contents.texts.iter();
    names.extend(texts.filter_map(|text| Some(text.split_once("::")?.0.to_owned())));
}
