//! [`SmallDisk`]: a disk in memory with an end that is soon reached, for tests of a disk that is full.
//!
//! It stands for the volume of a database. It is stricter in that not a byte is kept back for root, as most file systems do.

use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
};

/// A disk that is mounted on a folder, as long as it lives. Only root may have one.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of this size, such as `1m`, on a folder that exists. `None` where that is not allowed.
    ///
    /// # Errors
    /// When there is no `mount`.
    pub fn mount(folder: &Path, size: &str) -> io::Result<Option<Self>> {
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "none"]);
        let mounted = mount.arg(folder).output()?;
        Ok(mounted.status.success().then(|| Self(folder.to_owned())))
    }

    /// Gives it another size, with all that is on it.
    ///
    /// # Errors
    /// When that is refused.
    pub fn resize(&self, size: &str) -> io::Result<()> {
        let options = format!("remount,size={size}");
        let mut mount = Command::new("mount");
        let resized = mount.args(["-o", &options]).arg(&self.0).status()?;
        if resized.success() {
            return Ok(());
        }
        Err(io::Error::other("the disk was not resized"))
    }

    /// Fills it to the end with a file, which is returned.
    ///
    /// # Errors
    /// When it cannot be written for another reason.
    pub fn fill(&self) -> io::Result<PathBuf> {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path)?;
        loop {
            match io::Write::write_all(&mut file, &[0; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(path),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: files on it may still be open. A disk that stays is in memory, and ends with the machine.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
