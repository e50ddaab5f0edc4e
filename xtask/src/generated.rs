//! Generated files that are committed: written anew by one command, compared by another.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::output::say;
use crate::repo::Repo;

/// A generated file.
pub struct Generated {
    /// Where it is committed, from the root of the repository.
    pub path: &'static str,
    /// What it is generated from, for the message that they differ.
    pub source: &'static str,
    /// The command that writes it anew.
    pub command: &'static str,
}

impl Generated {
    /// Writes the file anew.
    pub fn write(&self, repo: &Repo, text: &str) -> Result<()> {
        let file = repo.root().join(self.path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        say!("==> Wrote {}", repo.shown(&file));
        Ok(())
    }

    /// Fails when the committed file is another than `text`.
    pub fn check(&self, repo: &Repo, text: &str) -> Result<()> {
        let file = repo.root().join(self.path);
        let present =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if present != text {
            bail!(
                "{} differs from what {} says of itself; `{}` writes it anew",
                repo.shown(&file),
                self.source,
                self.command
            );
        }
        Ok(())
    }
}
