//! Which of our packages may depend on which, and with which kind of dependency.

use super::packages::{Dependency, Package, Use};

/// Who may depend on one package. Packages are named by their folders.
pub struct Row {
    pub of: &'static str,
    /// Product packages, with any kind of dependency.
    pub product: &'static [&'static str],
    /// Packages below `tests/`, with any kind of dependency; others with a dev-dependency alone.
    pub tests: &'static [&'static str],
    /// Whether `ALL_TESTS` may as well.
    pub all_tests: bool,
}

/// Packages of tests that import whatever they test.
const ALL_TESTS: [&str; 6] = [
    "tests/harness",
    "tests/programs",
    "tests/services",
    "tests/simulations",
    "tests/bench",
    "tests/e2e",
];

const KIT: &str = "tests/kit";

/// One row for each package of ours that others may depend on. Packages that are planned stand in their rows already.
pub const ROWS: [Row; 19] = [
    Row {
        of: "crates/chain-types",
        product: &[
            "crates/geyser",
            "crates/market",
            "crates/store",
            "crates/wire",
            "indexer",
            "api",
        ],
        tests: &[KIT],
        all_tests: true,
    },
    Row {
        of: "crates/cpmm",
        product: &[
            "crates/swap-guard-interface",
            "crates/transaction",
            "crates/market",
            "api",
            "localnet",
        ],
        tests: &["crates/cpmm", KIT, "tests/bank", "tests/fuzz"],
        all_tests: true,
    },
    Row {
        of: "crates/swap-guard-interface",
        product: &["crates/transaction", "api", "localnet"],
        tests: &["indexer", KIT, "tests/bank"],
        all_tests: true,
    },
    Row {
        of: "crates/transaction",
        product: &["api"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "crates/market",
        product: &["api", "crates/console"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "crates/geyser",
        product: &["crates/market", "indexer"],
        tests: &[KIT, "tests/fuzz"],
        all_tests: true,
    },
    Row {
        of: "crates/store",
        product: &[
            "crates/webhook-client",
            "api",
            "indexer",
            "crates/cli",
            "crates/console",
        ],
        tests: &["crates/store"],
        all_tests: true,
    },
    Row {
        of: "crates/webhook-client",
        product: &["api", "indexer", "crates/cli"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "crates/config",
        product: &["api", "indexer", "crates/cli"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "crates/service-kit",
        product: &["crates/market", "api", "indexer", "crates/cli"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "crates/wire",
        product: &["api", "indexer", "crates/console", "clients/rust"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "api",
        product: &["crates/cli"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "indexer",
        product: &["crates/cli"],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "localnet",
        product: &[],
        tests: &["tests/e2e"],
        all_tests: false,
    },
    Row {
        of: KIT,
        product: &[],
        tests: &[
            "crates/market",
            "crates/webhook-client",
            "crates/cli",
            "api",
            "indexer",
            "tests/bank",
            "tests/fuzz",
        ],
        all_tests: true,
    },
    Row {
        of: "tests/harness",
        product: &[],
        tests: &[],
        all_tests: true,
    },
    Row {
        of: "programs/swap-guard",
        product: &[
            "programs/test-cpi-caller",
            "programs/bench-guard-heap",
            "programs/bench-guard-silent",
        ],
        tests: &[],
        all_tests: false,
    },
    Row {
        of: "programs/bpf-libcalls",
        product: &[
            "programs/swap-guard",
            "programs/local-cpmm",
            "programs/test-anchor-1-caller",
            "programs/test-cpi-caller",
            "programs/test-hostile-exchange",
            "programs/bench-guard-heap",
            "programs/bench-guard-silent",
        ],
        tests: &[],
        all_tests: false,
    },
    Row {
        of: "crates/console",
        product: &["api"],
        tests: &[],
        all_tests: true,
    },
];

impl Row {
    /// Whether the row names the package, for some kind of dependency.
    pub fn names(&self, package: &str) -> bool {
        self.product.contains(&package) || self.names_in_tests(package)
    }

    fn names_in_tests(&self, package: &str) -> bool {
        let is_below = |room: &&str| {
            let rest = package.strip_prefix(*room);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.tests.iter().any(is_below) || self.all_tests && ALL_TESTS.iter().any(is_below)
    }

    fn allows(&self, package: &Package, used: Use) -> bool {
        let in_tests = self.names_in_tests(&package.folder);
        self.product.contains(&package.folder.as_str())
            || in_tests && (used == Use::Dev || package.is_test())
    }
}

/// The row of a package.
pub fn row_of(folder: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.of == folder)
}

/// Dependencies among our own packages that no row allows.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            if let Some(why) = refusal(package, dependency) {
                found.push(format!("{}/Cargo.toml: {why}", package.folder));
            }
        }
    }
    found
}

fn refusal(package: &Package, dependency: &Dependency) -> Option<String> {
    let folder = dependency.folder.as_deref()?;
    let name = &dependency.package;
    let Some(row) = row_of(folder) else {
        return Some(format!(
            "nothing may depend on {name}, which has no row in the matrix"
        ));
    };
    if row.allows(package, dependency.used) {
        return None;
    }
    Some(if row.names(&package.folder) {
        format!("depends on {name}, which its tests alone may: a dev-dependency")
    } else {
        format!("depends on {name}, which it may not import")
    })
}
