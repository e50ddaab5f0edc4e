//! Import matrix: which of our packages may depend on which, and with which kind of dependency.

use super::packages::{Dependency, Package, Use};

/// One row for each package of ours that others may depend on, by their folders. Before the bar stand products, which
/// may with any kind of dependency; after it those that may in tests: packages below `tests/` with any kind, others
/// with a dev-dependency alone. `DOUBLED` stands for the tests between doubles, `REAL` for those on a real chain.
/// Packages that are planned stand in their rows already.
const MATRIX: &str = "
crates/chain-types: crates/geyser crates/market crates/store indexer api | tests/kit DOUBLED REAL
crates/cpmm: crates/swap-guard-interface crates/transaction crates/market api localnet | crates/cpmm tests/kit tests/fuzz DOUBLED REAL
crates/swap-guard-interface: crates/transaction api crates/cli localnet | indexer tests/kit DOUBLED REAL
crates/transaction: api crates/cli | DOUBLED REAL
crates/market: api crates/console | DOUBLED REAL
crates/geyser: crates/market indexer crates/cli | tests/kit tests/fuzz DOUBLED REAL
crates/program-idl: api indexer |
crates/store: crates/webhook-client api indexer crates/cli crates/console | crates/store DOUBLED REAL
crates/webhook-client: api indexer crates/cli | DOUBLED REAL
crates/config: api indexer crates/cli | DOUBLED REAL
crates/service-kit: crates/market api indexer crates/cli | DOUBLED REAL
crates/console: api | DOUBLED REAL
api: crates/cli | DOUBLED REAL
indexer: crates/cli | DOUBLED REAL
localnet: | REAL
clients/rust: | DOUBLED REAL
tests/kit: | crates/market crates/store crates/webhook-client crates/cli api indexer tests/fuzz DOUBLED REAL
tests/harness: | DOUBLED
programs/swap-guard: programs/swap-guard-devnet programs/test-cpi-caller programs/bench-guard-heap programs/bench-guard-silent programs/test-guard-reference |
programs/bpf-libcalls: programs/swap-guard programs/swap-guard-devnet programs/local-cpmm programs/test-anchor-1-caller programs/test-cpi-caller programs/test-hostile-exchange programs/bench-guard-heap programs/bench-guard-silent programs/test-guard-reference |
";

const DOUBLED: &str = "tests/harness tests/programs tests/services tests/simulations tests/bench";
const REAL: &str = "tests/e2e";

/// Who may depend on one package.
pub struct Row {
    pub of: &'static str,
    /// With any kind of dependency.
    pub products: Vec<&'static str>,
    /// In tests.
    pub tests: Vec<&'static str>,
}

/// The rows of the matrix.
pub fn rows() -> impl Iterator<Item = Row> {
    MATRIX.lines().filter_map(|line| {
        let (of, rest) = line.split_once(':')?;
        let (products, tests) = rest.split_once('|')?;
        let tests = tests.split_whitespace().flat_map(|one| match one {
            "DOUBLED" => DOUBLED.split_whitespace(),
            "REAL" => REAL.split_whitespace(),
            one => one.split_whitespace(),
        });
        Some(Row {
            of,
            products: products.split_whitespace().collect(),
            tests: tests.collect(),
        })
    })
}

/// The row of a package.
pub fn row_of(folder: &str) -> Option<Row> {
    rows().find(|row| row.of == folder)
}

impl Row {
    /// Whether the row names the package, for some kind of dependency.
    pub fn names(&self, package: &str) -> bool {
        self.products.contains(&package) || self.tests.contains(&package)
    }

    fn allows(&self, package: &Package, used: Use) -> bool {
        let folder = package.folder.as_str();
        let in_tests = self.tests.contains(&folder);
        self.products.contains(&folder) || in_tests && (used == Use::Dev || package.is_test())
    }
}

/// Dependencies among our own packages that no row allows.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let all = packages.iter().flat_map(|package| {
        let dependencies = package.dependencies.iter();
        dependencies.filter_map(move |dependency| Some((package, refusal(package, dependency)?)))
    });
    all.map(|(package, why)| format!("{}/Cargo.toml: {why}", package.folder))
        .collect()
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
