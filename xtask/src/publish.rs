//! Publishes a built file: copies it to the place where others look for it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Copies `built` to `published` in one visible step; an equal file is left alone, time stamp included.
pub fn publish(built: &Path, published: &Path) -> Result<()> {
    let fresh = fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    if fs::read(published).is_ok_and(|present| present == fresh) {
        return Ok(());
    }
    let folder = published.parent().context("a file stands in a folder")?;
    let unfinished = published.with_extension(format!("unfinished-{}", std::process::id()));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&unfinished, fresh))
        .and_then(|()| fs::rename(&unfinished, published))
        .with_context(|| format!("cannot write {}", published.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_what_differs_and_leaves_what_is_equal() {
        let folder = std::env::temp_dir().join(format!("xtask-publish-{}", std::process::id()));
        let (built, published) = (folder.join("built"), folder.join("out/published.so"));
        fs::create_dir_all(&folder).expect("the temporary folder is writable");
        let modified = || fs::metadata(&published).and_then(|meta| meta.modified());

        fs::write(&built, "one").expect("writable");
        publish(&built, &published).expect("published");
        let first = modified().expect("there");
        publish(&built, &published).expect("published again");
        assert_eq!(modified().expect("there"), first);

        fs::write(&built, "two").expect("writable");
        publish(&built, &published).expect("replaced");
        assert_eq!(fs::read(&published).expect("readable"), b"two");
        let entries = fs::read_dir(folder.join("out")).expect("readable").count();
        assert_eq!(entries, 1, "a temporary file was left");
        fs::remove_dir_all(folder).expect("the folder is ours");
    }
}
