//! Network disk: refuses a folder on which an SQLite file would not be safe.
//!
//! SQLite's processes agree by locks on the file and by memory that they share through another one. A file system that is
//! mounted by several machines gives neither across them, and many not even on one: the file would be damaged.

use std::{io, path::Path};

use nix::sys::statfs::statfs;
use thiserror::Error;

/// What file systems of a network call themselves, as the system numbers them (`linux/magic.h`, and their own sources where
/// they are not part of it).
const NETWORK: [(i64, &str); 12] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB 2"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x1983_0326, "BeeGFS"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "VirtualBox shared folders"),
    (0x7461_636f, "OCFS2"),
];

/// Why a folder is refused.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "its folder is on {name}, which several machines may mount, and where SQLite's locks do not hold: use a disk of this \
     machine, or a PostgreSQL database (store.url)"
)]
pub(super) struct NetworkDisk {
    name: &'static str,
}

/// Refuses a folder on a file system of a network.
pub(super) fn refuse(folder: &Path) -> io::Result<()> {
    let kind = statfs(folder)?.filesystem_type().0;
    refuse_kind(kind).map_err(io::Error::other)
}

fn refuse_kind(kind: i64) -> Result<(), NetworkDisk> {
    // Some systems give the number in 32 bits with a sign.
    let kind = kind & 0xffff_ffff;
    match NETWORK.iter().find(|(magic, _)| *magic == kind) {
        Some((_, name)) => Err(NetworkDisk { name }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_a_network_are_refused_by_name() {
        let refused = refuse_kind(0x6969).expect_err("NFS").to_string();
        assert!(
            refused.contains("NFS") && refused.contains("store.url"),
            "{refused}"
        );
        let signed = i64::from(i32::from_ne_bytes(0xff53_4d42_u32.to_ne_bytes()));
        assert_eq!(refuse_kind(signed), Err(NetworkDisk { name: "CIFS" }));
    }

    #[test]
    fn a_disk_of_this_machine_is_not_refused() {
        // ext4, XFS, btrfs, tmpfs, overlayfs.
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(refuse_kind(kind), Ok(()), "{kind:#x}");
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        refuse(folder.path()).expect("a disk of this machine");
    }
}
