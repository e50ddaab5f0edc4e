//! Rules inside a package: what the code of a module may import of the others, and words that it must not use.

use super::packages::Package;
use super::tree::{Module, Tree};

use self::Own::{Anything, NoSibling, Not, Only};

/// What a room may import of its own crate. Modules are named by their paths and stand for all below them.
pub enum Own {
    Anything,
    /// Nothing but these.
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
    /// No module beside it, but for these pairs: the importing and the imported one.
    NoSibling(&'static [(&'static str, &'static str)]),
}

/// One room.
pub struct Room {
    /// Folder of the package.
    pub package: &'static str,
    /// Paths of its modules, by spaces; empty for the whole package, and ending in `*` for each module below another.
    modules: &'static str,
    pub own: Own,
    /// Words, paths and, ending in `*`, beginnings of words that its code, tests apart, must not use; by spaces.
    pub never: &'static [&'static str],
}

const IO: &str = "async tokio std::fs std::io std::net";
const NETWORK: &str = "std::net tokio::net reqwest hyper";
const CLOCK: &str = "SystemTime Instant OffsetDateTime::now_utc";
const RANDOMNESS: &str = "rand";
const PANICS: &str = "panic unreachable unimplemented unwrap";
const FLOATS: &str = "f32 f64";
const HTTP: &str = "axum reqwest sluice_webhook_client";
const PROTOBUF: &str = "yellowstone_grpc_client yellowstone_grpc_proto tonic prost";
const WAITS: &str = "await blocking_send blocking_recv block_on";
const ASSERTIONS: &str = "assert assert_eq assert_ne debug_assert panic";
const POOLS: &str = "SqlitePool PgPool sqlx::pool sqlx::sqlite sqlx::postgres";
const MARKET: &str = "sluice_market sluice_harness::market";
const INDEXER: &str = "sluice_indexer sluice_harness::indexer";
const GEYSER_API: &str = "error generation joined_stream limits race request request_limits servers slot_assembly slot_stream stream update";
/// Of delivery, ingest knows how much of it is free, and nothing else.
const BELOW_INGEST: &[&str] = &[
    "slots",
    "events",
    "rpc",
    "delivery::capacity",
    "metrics",
    "status",
    "to_lease",
    "traces",
];

/// The rooms that have rules of their own. Those of packages that are not there yet wait for them.
pub const ROOMS: &[Room] = &[
    room("crates/chain-types", "", Anything, &[IO, CLOCK]),
    room("crates/cpmm", "", Anything, &[IO, CLOCK, FLOATS, PANICS]),
    room(
        "crates/swap-guard-interface",
        "",
        Anything,
        &["anchor_lang async tokio"],
    ),
    // What is unpacked is read by the trait that files are read by.
    room(
        "crates/program-idl",
        "",
        Anything,
        &["async tokio std::fs std::net", CLOCK],
    ),
    room("crates/transaction", "", Anything, &[IO, CLOCK]),
    room("crates/market", "", Anything, &["axum utoipa"]),
    // What the crate shows of itself: no protobuf type is among it.
    room("crates/geyser", GEYSER_API, Anything, &[PROTOBUF]),
    room("crates/store", "model", Only(&[]), &["sqlx async tokio"]),
    room(
        "crates/store",
        "sql",
        Only(&["model", "backend", "error"]),
        &[POOLS],
    ),
    room("crates/store", "backend", Only(&["error"]), &[]),
    room("crates/webhook-client", "", Anything, &["Store"]),
    room("crates/config", "", Anything, &["solana_*"]),
    room("crates/service-kit", "", Anything, &["solana_*"]),
    room("api", "routes::*", NoSibling(&[("swap", "quote")]), &[]),
    room("api", "extract error auth rpc", Not(&["routes"]), &[]),
    room(
        "indexer",
        "slots",
        Only(&[]),
        &[IO, CLOCK, RANDOMNESS, "Store"],
    ),
    room(
        "indexer",
        "events",
        Only(&["slots"]),
        &["async tokio Store", CLOCK, RANDOMNESS],
    ),
    room("indexer", "ingest", Only(BELOW_INGEST), &[HTTP]),
    room("indexer", "rpc", Only(&[]), &["axum Store"]),
    room(
        "indexer",
        "delivery",
        Not(&["slots", "events", "ingest"]),
        &[],
    ),
    // What the validator calls: its threads must not wait.
    room("geyser-plugin", "plugin", Anything, &[WAITS]),
    room("tests/harness", "", Anything, &[ASSERTIONS]),
    room("tests/programs", "", Anything, &[NETWORK]),
    // Judges: each apart from what it judges.
    room(
        "tests/simulations",
        "faults::model",
        Not(&["chaos", "fates"]),
        &[MARKET],
    ),
    room(
        "tests/simulations",
        "chaos::verdict",
        Not(&["faults", "fates"]),
        &[INDEXER],
    ),
    room(
        "tests/simulations",
        "fates",
        Not(&["faults", "chaos"]),
        &["sluice_indexer"],
    ),
];

const fn room(
    package: &'static str,
    modules: &'static str,
    own: Own,
    never: &'static [&'static str],
) -> Room {
    Room {
        package,
        modules,
        own,
        never,
    }
}

/// What breaks the rules of a room.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        for room in ROOMS.iter().filter(|room| room.package == package.folder) {
            for tree in package.targets.iter().map(|target| &target.tree) {
                for at in 0..tree.modules.len() {
                    if let Some(inside) = room.inside(&tree.modules[at]) {
                        found.extend(imports(room, &inside, tree, at));
                        found.extend(words(room, &tree.modules[at]));
                    }
                }
            }
        }
    }
    found
}

impl Room {
    /// All words that it must not use.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.never.iter().flat_map(|words| words.split_whitespace())
    }

    /// The paths of its modules.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> {
        let whole = self.modules.is_empty().then_some("");
        self.modules.split_whitespace().chain(whole)
    }

    /// The path of the room that the module is in.
    fn inside(&self, module: &Module) -> Option<Vec<String>> {
        let path = &module.path;
        self.modules().find_map(|room| {
            let above = room.strip_suffix("::*");
            let names = above.unwrap_or(room).split("::");
            let depth =
                names.filter(|name| !name.is_empty()).count() + usize::from(above.is_some());
            let is_in = is_below(path, above.unwrap_or(room)) && path.len() >= depth;
            is_in.then(|| path[..depth].to_vec())
        })
    }

    fn allows(&self, inside: &[String], target: &[String]) -> bool {
        if target.starts_with(inside) {
            return true;
        }
        match &self.own {
            Own::Anything => true,
            Own::Only(rooms) => rooms.iter().any(|room| is_below(target, room)),
            Own::Not(rooms) => !rooms.iter().any(|room| is_below(target, room)),
            Own::NoSibling(pairs) => {
                let above = &inside[..inside.len() - 1];
                if !target.starts_with(above) || target.len() == above.len() {
                    return true;
                }
                let (who, whom) = (&inside[above.len()], &target[above.len()]);
                pairs.contains(&(who.as_str(), whom.as_str()))
            }
        }
    }
}

/// Whether a module's path is the room's or below it.
fn is_below(path: &[String], room: &str) -> bool {
    let mut names = room.split("::").filter(|name| !name.is_empty());
    let mut path = path.iter();
    names.all(|name| path.next().is_some_and(|segment| segment == name))
}

fn imports(room: &Room, inside: &[String], tree: &Tree, at: usize) -> Vec<String> {
    let module = &tree.modules[at];
    let mut found = Vec::new();
    for path in module.code().named() {
        let Some(target) = tree.resolve(at, path) else {
            continue;
        };
        let target = &tree.modules[target].path;
        if !room.allows(inside, target) {
            found.push(format!(
                "{}:{}: {} may not import {}",
                module.file.display(),
                path.line,
                inside.join("::"),
                if target.is_empty() {
                    "crate".to_owned()
                } else {
                    target.join("::")
                },
            ));
        }
    }
    found
}

fn words(room: &Room, module: &Module) -> Vec<String> {
    let file = module.file.display();
    room.words()
        .filter_map(|word| Some((word, line_of(word, module)?)))
        .map(|(word, line)| format!("{file}:{line}: {word} has no place here"))
        .collect()
}

/// Where a module first uses a word or names a path.
fn line_of(word: &str, module: &Module) -> Option<usize> {
    if word.contains("::") {
        let begins = |segments: &[String]| segments.join("::").starts_with(word);
        let mut named = module.code().named();
        return Some(named.find(|path| begins(&path.segments))?.line);
    }
    let is_it = |used: &str| match word.strip_suffix('*') {
        Some(beginning) => used.starts_with(beginning),
        None => used == word,
    };
    let mut words = module.code().words.iter();
    Some(words.find(|(used, _)| is_it(used))?.1)
}
