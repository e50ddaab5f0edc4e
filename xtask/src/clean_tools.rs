//! `clean-tools`: empties the cache.

use anyhow::Result;

use crate::cache::Cache;
use crate::output::say;

pub fn run(cache: &Cache) -> Result<()> {
    cache.empty()?;
    say!("==> Emptied {}", cache.root().display());
    say!("    The next command that needs a tool sets it up again.");
    Ok(())
}
