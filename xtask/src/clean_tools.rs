//! `clean-tools`: empties the cache.

use anyhow::Result;

use crate::cache::Cache;

pub fn run(cache: &Cache) -> Result<()> {
    cache.empty()?;
    println!("==> Emptied {}", cache.root().display());
    println!("    The next command that needs a tool sets it up again.");
    Ok(())
}
