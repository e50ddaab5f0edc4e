//! Rules inside a package: what the code of a module may import of the others, and words that it must not use.

use super::packages::Package;
use super::tokens::Token;
use super::tree::{Module, Tree};

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
    /// Path of the module; empty for the whole package, and ending in `*` for each module below another.
    pub module: &'static str,
    pub own: Own,
    /// Words, paths and, ending in `*`, beginnings of words that its code, tests apart, must not use.
    pub never: &'static [&'static [&'static str]],
}

const IO: [&str; 5] = ["async", "tokio", "std::fs", "std::io", "std::net"];
const CLOCK: [&str; 3] = ["SystemTime", "Instant", "OffsetDateTime::now_utc"];
const RANDOMNESS: [&str; 1] = ["rand"];
const HTTP_CLIENT: [&str; 2] = ["reqwest", "sluice_webhook_client"];

/// The rooms that have rules of their own. Those of packages that are not there yet wait for them.
pub const ROOMS: [Room; 22] = [
    Room {
        package: "crates/chain-types",
        module: "",
        own: Own::Anything,
        never: &[&IO, &CLOCK],
    },
    Room {
        package: "crates/cpmm",
        module: "",
        own: Own::Anything,
        never: &[
            &IO,
            &CLOCK,
            &[
                "f32",
                "f64",
                "panic",
                "unreachable",
                "unimplemented",
                "unwrap",
            ],
        ],
    },
    Room {
        package: "crates/swap-guard-interface",
        module: "",
        own: Own::Anything,
        never: &[&["anchor_lang", "async", "tokio"]],
    },
    Room {
        package: "crates/transaction",
        module: "",
        own: Own::Anything,
        never: &[&IO, &CLOCK],
    },
    Room {
        package: "crates/market",
        module: "",
        own: Own::Anything,
        never: &[&["axum", "utoipa"]],
    },
    Room {
        package: "crates/store",
        module: "model",
        own: Own::Only(&[]),
        never: &[&["sqlx", "async", "tokio"]],
    },
    Room {
        package: "crates/store",
        module: "sql",
        own: Own::Only(&["model", "backend", "error"]),
        never: &[&[
            "SqlitePool",
            "PgPool",
            "sqlx::pool",
            "sqlx::sqlite",
            "sqlx::postgres",
        ]],
    },
    Room {
        package: "crates/store",
        module: "backend",
        own: Own::Only(&["error"]),
        never: &[],
    },
    Room {
        package: "crates/webhook-client",
        module: "",
        own: Own::Anything,
        never: &[&["Store"]],
    },
    Room {
        package: "crates/config",
        module: "",
        own: Own::Anything,
        never: &[&["solana_*"]],
    },
    Room {
        package: "crates/service-kit",
        module: "",
        own: Own::Anything,
        never: &[&["solana_*"]],
    },
    Room {
        package: "api",
        module: "routes::*",
        own: Own::NoSibling(&[("swap", "quote")]),
        never: &[],
    },
    Room {
        package: "api",
        module: "extract",
        own: Own::Not(&["routes"]),
        never: &[],
    },
    Room {
        package: "api",
        module: "error",
        own: Own::Not(&["routes"]),
        never: &[],
    },
    Room {
        package: "api",
        module: "auth",
        own: Own::Not(&["routes"]),
        never: &[],
    },
    Room {
        package: "api",
        module: "rpc",
        own: Own::Not(&["routes"]),
        never: &[],
    },
    Room {
        package: "indexer",
        module: "slots",
        own: Own::Only(&[]),
        never: &[&IO, &CLOCK, &RANDOMNESS, &["Store"]],
    },
    Room {
        package: "indexer",
        module: "events",
        own: Own::Only(&["slots"]),
        never: &[&["async", "tokio", "Store"], &CLOCK, &RANDOMNESS],
    },
    Room {
        package: "indexer",
        module: "ingest",
        own: Own::Not(&["run"]),
        never: &[&["axum"], &HTTP_CLIENT],
    },
    Room {
        package: "indexer",
        module: "delivery",
        own: Own::Not(&["slots", "events", "ingest"]),
        never: &[],
    },
    Room {
        package: "geyser-plugin",
        // What the validator calls: its threads must not wait.
        module: "plugin",
        own: Own::Anything,
        never: &[&["await", "blocking_send", "blocking_recv", "block_on"]],
    },
    Room {
        package: "crates/wire",
        module: "",
        own: Own::Anything,
        never: &[&["axum", "tokio", "async"]],
    },
];

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
    /// The path of the room that the module is in.
    fn inside(&self, module: &Module) -> Option<Vec<String>> {
        let path = &module.path;
        if let Some(above) = self.module.strip_suffix("::*") {
            let depth = above.split("::").count() + 1;
            return (is_below(path, above) && path.len() >= depth).then(|| path[..depth].to_vec());
        }
        let room = self.module.split("::").filter(|name| !name.is_empty());
        is_below(path, self.module).then(|| room.map(str::to_owned).collect())
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
    for path in module.contents.named() {
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
    let mut found = Vec::new();
    for word in room.never.iter().copied().flatten() {
        let line = if word.contains("::") {
            let segments: Vec<_> = word.split("::").collect();
            let mut named = module.contents.named();
            named
                .find(|path| {
                    path.segments
                        .iter()
                        .map(String::as_str)
                        .take(segments.len())
                        .eq(segments.iter().copied())
                })
                .map(|path| path.line)
        } else {
            module
                .code
                .iter()
                .find(|token| is_word(token, word))
                .map(|token| token.line)
        };
        if let Some(line) = line {
            found.push(format!(
                "{}:{line}: {word} has no place here",
                module.file.display()
            ));
        }
    }
    found
}

fn is_word(token: &Token, word: &str) -> bool {
    match word.strip_suffix('*') {
        Some(beginning) => {
            token.kind == super::tokens::Kind::Word && token.text.starts_with(beginning)
        }
        None => token.is(word),
    }
}
