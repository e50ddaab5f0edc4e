//! Rust's standard library for SBF: its sources with three edits, and the target's description.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::command::{capture, command};
use crate::output::say;
use crate::repo::Repo;

/// Debian's compiler, whose very sources these are; by absolute path, because rustup's stays first on PATH.
pub const RUSTC: &str = "/usr/bin/rustc";

/// One edit of the library sources.
struct Edit {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

/// The library knows neither the architecture's alignment nor a platform called by two names, and its hash maps take their
/// keys from a writable static, which the chain's loader refuses.
const EDITS: [Edit; 3] = [
    Edit {
        file: "std/src/sys/alloc/mod.rs",
        from: r#"panic!("add a value for MIN_ALIGN")"#,
        to: "8",
    },
    Edit {
        file: "std/build.rs",
        from: r#"target_os == "zkvm""#,
        to: r#"target_os.contains("zkvm")"#,
    },
    Edit {
        file: "std/src/hash/random.rs",
        from: "        thread_local!(static KEYS: Cell<(u64, u64)> = {
            Cell::new(hashmap_random_keys())
        });

        KEYS.with(|keys| {
            let (k0, k1) = keys.get();
            keys.set((k0.wrapping_add(1), k1));
            RandomState { k0, k1 }
        })
",
        to: "        RandomState { k0: 1, k1: 2 }\n",
    },
];

/// File name of the target description. Its stem names the folder of the build's output.
const TARGET_FILE: &str = "sbpfv3-solana.json";

/// The edited library and the target description.
#[derive(Debug)]
pub struct Library {
    folder: PathBuf,
}

impl Library {
    /// Copies and edits the sources that belong to Debian's rustc, unless that has been done.
    ///
    /// `compiler` is that rustc's whole version text: the sources must be of the very compiler that builds them.
    pub fn set_up(repo: &Repo, cache: &Cache, release: &str, compiler: &str) -> Result<Self> {
        let target = target_description(repo)?;
        let edits: String = EDITS
            .iter()
            .map(|edit| format!("{}: {} -> {}\n", edit.file, edit.from, edit.to))
            .collect();
        let recipe = format!("recipe 1\n{compiler}\n{edits}\n{target}\n");
        let folder = cache.tool("sbf-library", &recipe, |folder| {
            let sources = PathBuf::from(format!("/usr/src/rustc-{release}/library"));
            say!("==> Preparing the standard library's sources for on-chain programs");
            copy(&sources, &folder.join("library"))?;
            for edit in &EDITS {
                apply(edit, &folder.join("library"))?;
            }
            fs::write(folder.join(TARGET_FILE), &target)?;
            Ok(())
        })?;
        Ok(Self { folder })
    }

    /// What cargo is to take for the library's sources.
    pub fn sources(&self) -> PathBuf {
        self.folder.join("library")
    }

    pub fn target_file(&self) -> PathBuf {
        self.folder.join(TARGET_FILE)
    }

    /// Folder of the build's output, under cargo's target folder.
    pub fn target_name(&self) -> &'static str {
        TARGET_FILE.trim_end_matches(".json")
    }

    /// Changes whenever the library or the target does. cargo itself does not notice edits in there.
    pub fn recipe(&self) -> Result<String> {
        fs::read_to_string(self.folder.join("recipe")).context("the library's stamp is gone")
    }
}

fn target_description(repo: &Repo) -> Result<String> {
    let mut print = command(repo, RUSTC);
    print.args(["-Z", "unstable-options", "--print", "target-spec-json"]);
    print.args(["--target", "bpfel-unknown-none"]);
    let base = capture(print.env("RUSTC_BOOTSTRAP", "1"))?;
    let base = serde_json::from_str(&base).context("rustc's target description is no JSON")?;
    let adapted = adapt(base).context("rustc's target description is no JSON object")?;
    serde_json::to_string_pretty(&adapted).context("JSON values can always be written")
}

/// Turns rustc's description of BPF into the chain's.
fn adapt(base: Value) -> Option<Value> {
    let Value::Object(mut target) = base else {
        return None;
    };
    target.remove("metadata");
    for (key, value) in [
        // The one platform of the standard library with no operating system under it that builds for this.
        ("os", json!("zkvm")),
        ("vendor", json!("solana")),
        // Version 4 of the instruction set has instructions that the chain's loader does not know.
        ("cpu", json!("v3")),
        // The standard library needs `Arc`.
        ("atomic-cas", json!(true)),
        ("min-atomic-width", json!(8)),
        // The standard library's panic machinery needs writable statics.
        ("panic-strategy", json!("immediate-abort")),
    ] {
        target.insert(key.to_owned(), value);
    }
    Some(Value::Object(target))
}

fn apply(edit: &Edit, library: &Path) -> Result<()> {
    let file = library.join(edit.file);
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let edited = replace_once(&text, edit.from, edit.to).with_context(|| {
        format!(
            "{} is not the text that the edit was written for; this recipe fits Debian 12's rustc 1.96",
            edit.file
        )
    })?;
    fs::write(&file, edited).with_context(|| format!("cannot write {}", file.display()))
}

/// Replaces the one occurrence; none or several are refused.
pub fn replace_once(text: &str, from: &str, to: &str) -> Option<String> {
    (text.matches(from).count() == 1).then(|| text.replacen(from, to, 1))
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| {
        format!(
            "cannot read {} (Debian package rust-web-src)",
            from.display()
        )
    })?;
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        // Links are followed: the copy must not depend on where the original stood.
        if source.is_dir() {
            copy(&source, &target)?;
        } else if let Err(error) = fs::copy(&source, &target) {
            bail!("cannot copy {}: {error}", source.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_needs_exactly_one_place() {
        assert_eq!(replace_once("a b c", "b", "x").as_deref(), Some("a x c"));
        assert_eq!(replace_once("a b b", "b", "x"), None);
        assert_eq!(replace_once("a", "b", "x"), None);
    }

    #[test]
    fn the_target_keeps_what_rustc_says_and_overrides_what_must_differ() {
        let base = json!({"arch": "bpf", "atomic-cas": false, "metadata": {"std": false}});
        let adapted = adapt(base).expect("an object");
        assert_eq!(adapted["arch"], "bpf");
        assert_eq!(adapted["atomic-cas"], true);
        assert_eq!(adapted["cpu"], "v3");
        assert_eq!(adapted.get("metadata"), None);
        assert_eq!(adapt(json!("text")), None);
    }
}
