//! Files of a package or an image: copied, with the folders they stand in and their mode.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Copies a file to where it is to stand, with this mode.
pub(super) fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file stands in a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(from, to).map(drop))
        .and_then(|()| fs::set_permissions(to, Permissions::from_mode(mode)))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
