//! Cache of downloaded and built tools, outside the checkout, shared by all of this user's checkouts.
//!
//! A tool is a folder with a stamp, the full text of the recipe that made it. It is good while the stamp equals the recipe
//! of today. It is made in a temporary folder, stamped last and then renamed, so an interrupted set-up never looks finished.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::output::say;

/// Marks a folder as a cache for backup programs, and as ours to empty.
const TAG_FILE: &str = "CACHEDIR.TAG";

/// First line as the cache directory tagging specification demands it.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # Tools of the Sluice repository. `cargo xtask clean-tools` empties this folder.\n";

const STAMP_FILE: &str = "recipe";

/// The cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `SLUICE_CACHE`, else `XDG_CACHE_HOME/sluice`, else `~/.cache/sluice`; created and tagged.
    pub fn open() -> Result<Self> {
        let cache = Self { root: choose()? };
        cache.tag()?;
        Ok(cache)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a tool whether it is there or not.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the tool's folder, made by `make` when it is missing or was made by another recipe.
    ///
    /// `make` gets an empty temporary folder which is renamed afterwards: nothing in it may refer to its own path.
    pub fn tool(
        &self,
        name: &str,
        recipe: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.folder(name);
        if is_good(&folder, recipe) {
            return Ok(folder);
        }
        let _guard = self.lock()?;
        if is_good(&folder, recipe) {
            return Ok(folder);
        }
        let unfinished = self.root.join(format!("{name}.unfinished"));
        remove(&unfinished)?;
        fs::create_dir_all(&unfinished)
            .with_context(|| format!("cannot create {}", unfinished.display()))?;
        make(&unfinished)?;
        fs::write(unfinished.join(STAMP_FILE), recipe)
            .with_context(|| format!("cannot write into {}", unfinished.display()))?;
        remove(&folder)?;
        fs::rename(&unfinished, &folder)
            .with_context(|| format!("cannot rename to {}", folder.display()))?;
        Ok(folder)
    }

    /// Removes everything from the cache but its own mark and lock.
    pub fn empty(&self) -> Result<()> {
        if !self.root.join(TAG_FILE).is_file() {
            bail!(
                "{} has no {TAG_FILE}: it does not look like Sluice's cache, so nothing was removed",
                self.root.display()
            );
        }
        let _guard = self.lock()?;
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name() != TAG_FILE && entry.file_name() != LOCK_FILE {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    fn tag(&self) -> Result<()> {
        let file = self.root.join(TAG_FILE);
        if file.is_file() {
            return Ok(());
        }
        fs::create_dir_all(&self.root)
            .and_then(|()| fs::write(&file, TAG))
            .with_context(|| format!("cannot create the cache {}", self.root.display()))
    }

    /// Two commands at once must not make the same tool; the second waits and then finds it made.
    fn lock(&self) -> Result<File> {
        let path = self.root.join(LOCK_FILE);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        if file.try_lock().is_err() {
            say!("    waiting for another `cargo xtask` that is setting up tools");
            file.lock()
                .with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(file)
    }
}

const LOCK_FILE: &str = "lock";

fn choose() -> Result<PathBuf> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    let chosen = if let Some(own) = named("SLUICE_CACHE") {
        PathBuf::from(own)
    } else if let Some(user) = named("XDG_CACHE_HOME") {
        PathBuf::from(user).join("sluice")
    } else {
        let home = named("HOME").context("neither SLUICE_CACHE nor HOME is set")?;
        PathBuf::from(home).join(".cache/sluice")
    };
    std::path::absolute(&chosen)
        .with_context(|| format!("{} is not a usable path", chosen.display()))
}

fn is_good(folder: &Path, recipe: &str) -> bool {
    fs::read_to_string(folder.join(STAMP_FILE)).is_ok_and(|stamp| stamp == recipe)
}

/// Removes a file, a link or a whole folder; one that is not there is fine.
pub fn remove(path: &Path) -> Result<()> {
    let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    let removed = if is_folder {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Cache {
        let root = env::temp_dir().join(format!("xtask-cache-{name}-{}", std::process::id()));
        let cache = Cache { root };
        cache.tag().expect("the temporary folder is writable");
        cache
    }

    fn write_one(folder: &Path) -> Result<()> {
        Ok(fs::write(folder.join("file"), "1")?)
    }

    #[test]
    fn makes_a_tool_once() {
        let cache = cache("once");
        let first = cache.tool("tool", "v1", write_one).expect("made");
        let second = cache.tool("tool", "v1", |_| bail!("made twice"));
        assert_eq!(second.expect("found"), first);
        assert!(first.join("file").is_file());
        remove(cache.root()).expect("the folder is ours");
    }

    #[test]
    fn another_recipe_makes_it_again_from_nothing() {
        let cache = cache("again");
        cache.tool("tool", "v1", write_one).expect("made");
        let folder = cache.tool("tool", "v2", |_| Ok(())).expect("made again");
        assert!(!folder.join("file").exists());
        remove(cache.root()).expect("the folder is ours");
    }

    #[test]
    fn a_failed_set_up_does_not_look_finished() {
        let cache = cache("failed");
        let failed = cache.tool("tool", "v1", |folder| {
            write_one(folder)?;
            bail!("interrupted")
        });
        assert!(failed.is_err());
        assert!(!cache.folder("tool").exists());
        let folder = cache.tool("tool", "v1", |_| Ok(())).expect("made");
        assert!(!folder.join("file").exists(), "leftovers were kept");
        remove(cache.root()).expect("the folder is ours");
    }

    #[test]
    fn empties_only_a_folder_it_tagged() {
        let cache = cache("empty");
        cache.tool("tool", "v1", write_one).expect("made");
        cache.empty().expect("emptied");
        assert!(!cache.folder("tool").exists());
        remove(&cache.root().join(TAG_FILE)).expect("the file is ours");
        assert!(cache.empty().is_err());
        remove(cache.root()).expect("the folder is ours");
    }
}
