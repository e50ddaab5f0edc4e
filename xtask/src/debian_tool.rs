//! Programs out of Debian packages, unpacked into the cache: nothing is installed, and no service of theirs is started.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::command::on_path;
use crate::packages::debian_release;
use crate::private_apt;
use crate::repo::Repo;
use crate::step::Step;

/// A program that needs nothing of its package but itself.
#[derive(Clone, Copy, Debug)]
pub struct DebianTool {
    pub package: &'static str,
    pub program: &'static str,
    pub why: &'static str,
    /// How large the download is.
    pub download: &'static str,
}

impl DebianTool {
    /// The program on PATH, else the one in the cache, which is fetched where it is missing.
    pub fn set_up(&self, repo: &Repo, cache: &Cache) -> Result<PathBuf> {
        if let Some(found) = on_path(self.program) {
            return Ok(found);
        }
        let Self {
            package, program, ..
        } = self;
        let suite = debian_release().with_context(|| {
            format!(
                "{program} is not on PATH, and this is no Debian, whose package {package} has it"
            )
        })?;
        let recipe = format!("{package} of Debian {suite}, recipe 1\n");
        let folder = cache.tool(program, &recipe, |folder| {
            let step = Step::begin(
                repo,
                program,
                &format!("Unpacking {program} of Debian's {package} into the cache"),
                self.why,
                &format!("10 s, once; {} of download", self.download),
            )?;
            let packages = [*package];
            private_apt::unpack(repo, &step, &suite, &packages, folder, &folder.join("root"))?;
            step.done();
            Ok(())
        })?;
        Ok(folder.join("root/usr/bin").join(program))
    }
}
