//! Linker `sbpf-linker`, and the script through which rustc starts it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::llvm::Llvm;
use crate::cache::Cache;
use crate::command::{capture, command};
use crate::registry_tool::RegistryTool;
use crate::repo::Repo;

const LINKER: RegistryTool = RegistryTool {
    package: "sbpf-linker",
    version: "0.2.6",
    binary: "sbpf-linker",
    why: "it turns the compiler's output into a program that the chain loads",
    takes: "45 s on two cores",
    optimized: false,
};

/// Installs the linker unless that has been done and returns the script to name as rustc's linker.
pub fn set_up(repo: &Repo, cache: &Cache, llvm: &Llvm) -> Result<PathBuf> {
    let linker = LINKER.install(repo, cache, "")?;
    let script = cache.folder("sbf-ld");
    write_script(&script, &linker, llvm)?;
    prove(repo, &script)?;
    Ok(script)
}

/// Which linker and which LLVM a program was linked by.
pub fn recipe() -> String {
    format!("{} {}, LLVM 23\n", LINKER.package, LINKER.version)
}

/// The linker runs under the loader and the C library that LLVM was built for; no other process does.
fn write_script(script: &Path, linker: &Path, llvm: &Llvm) -> Result<()> {
    let libraries = llvm.libraries();
    let text = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH={llvm}\nexec {loader} --library-path {libraries} {linker} \"$@\"\n",
        llvm = quoted(&llvm.only_library()),
        loader = quoted(&libraries.join("ld-linux-x86-64.so.2")),
        libraries = quoted(&libraries),
        linker = quoted(linker),
    );
    if fs::read_to_string(script).is_ok_and(|existing| existing == text) {
        return Ok(());
    }
    let unfinished = script.with_extension("unfinished");
    fs::write(&unfinished, text)
        .and_then(|()| fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&unfinished, script))
        .with_context(|| format!("cannot write {}", script.display()))
}

/// Starts the linker once, so that a missing library shows here and not as a failed link.
fn prove(repo: &Repo, script: &Path) -> Result<()> {
    let works = capture(command(repo, script).arg("--version"));
    works.map(drop).context(
        "sbpf-linker does not start; `cargo xtask clean-tools` and a new run set it up from nothing",
    )
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_paths_for_the_shell() {
        assert_eq!(quoted(Path::new("/a b/c")), "'/a b/c'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
