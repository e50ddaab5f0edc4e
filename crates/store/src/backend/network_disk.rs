//! Network disk: refuses a folder on which an SQLite file would not be safe.
//!
//! SQLite's processes agree by locks on the file and by memory that they share through another one. A file system that is
//! mounted by several machines gives neither across them, and many not even on one: the file would be damaged.
//!
//! The system numbers the kinds of file systems, but has one number for all that a process serves (FUSE), of a network or not. Of
//! those the name is looked up with which they were mounted, and only the ones are taken that are known to keep their files on
//! disks of this machine: most others do not, and a folder that is refused wrongly is known at the first start, before anything is
//! stored in it.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use nix::sys::{
    stat::{major, minor},
    statfs::statfs,
};
use thiserror::Error;

/// What file systems of a network call themselves, as the system numbers them (`linux/magic.h`, and their own sources where
/// they are not part of it).
const NETWORK: [(i64, &str); 14] = [
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
    (0x0102_1997, "9P"),
    (0x0116_1970, "GFS2"),
];

/// The number of everything that is served by a process, and of what a host shares with its virtual machines (virtiofs).
const FUSE: i64 = 0x6573_5546;

/// As what those are mounted that keep their files on disks of this machine: in a block device, or in folders of another file
/// system, whose own kind is not looked up.
const LOCAL_FUSE: [&str; 14] = [
    "fuseblk",
    "fuse.ntfs-3g",
    "fuse.ntfs",
    "fuse.exfat",
    "fuse.ext2",
    "fuse.ext3",
    "fuse.ext4",
    "fuse.fuse-ext2",
    "fuse.zfs",
    "fuse.mergerfs",
    "fuse.fuse-overlayfs",
    "fuse.bindfs",
    "fuse.gocryptfs",
    "fuse.encfs",
];

/// Where the system lists what is mounted where.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The kind of file system on which a folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiskKind {
    /// As the system numbers it.
    magic: i64,
    /// As it was mounted, where the number does not say enough and the mount is listed.
    mounted_as: Option<String>,
}

/// Why a folder is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum NetworkDisk {
    /// Its kind is one of a network.
    #[error(
        "its folder is on {name}, which several machines may mount, and where SQLite's locks do not hold: use a disk of this \
         machine, or a PostgreSQL database (store.url)"
    )]
    Known {
        /// What it is called.
        name: &'static str,
    },
    /// It is served by a process that may well get it from a network.
    #[error(
        "its folder is on a file system of the type {mounted_as}, which is not known to be a disk of this machine, and \
         SQLite's locks may not hold there: use a disk of this machine, or a PostgreSQL database (store.url)"
    )]
    Served {
        /// As what it was mounted.
        mounted_as: String,
    },
}

impl DiskKind {
    /// The kind of the file system that the folder is on.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        // Some systems give the number in 32 bits with a sign.
        let magic = statfs(folder)?.filesystem_type().0 & 0xffff_ffff;
        let mounted_as = if magic == FUSE {
            let device = fs::metadata(folder)?.dev();
            let device = format!("{}:{}", major(device), minor(device));
            // Without a list it may be anything, as one that is not listed.
            let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
            mounted_as(&mounts, &device, &folder.canonicalize()?)
        } else {
            None
        };
        Ok(Self { magic, mounted_as })
    }

    /// Refuses one of a network.
    pub(super) fn refuse_network(&self) -> Result<(), NetworkDisk> {
        if let Some((_, name)) = NETWORK.iter().find(|(magic, _)| *magic == self.magic) {
            return Err(NetworkDisk::Known { name });
        }
        let mounted_as = self.mounted_as.as_deref().unwrap_or("fuse");
        if self.magic == FUSE && !LOCAL_FUSE.contains(&mounted_as) {
            let mounted_as = mounted_as.to_owned();
            return Err(NetworkDisk::Served { mounted_as });
        }
        Ok(())
    }
}

/// The type with which the file system of a folder was mounted, by the list of mounts: of the mount that has its device, or else,
/// where none has, of the one that is nearest above the folder, the last of several in one place.
fn mounted_as(mounts: &str, device: &str, folder: &Path) -> Option<String> {
    let mounts = || mounts.lines().filter_map(Mount::parse);
    let of_device = mounts().find(|mount| mount.device == device);
    let above = || {
        mounts()
            .filter(|mount| folder.starts_with(&mount.point))
            .max_by_key(|mount| Path::new(&mount.point).components().count())
    };
    let found = of_device.or_else(above)?;
    Some(found.kind.to_owned())
}

/// A line of the list of mounts.
struct Mount<'a> {
    device: &'a str,
    point: String,
    kind: &'a str,
}

impl<'a> Mount<'a> {
    /// The fields are: number, that of the mount above, device, root, point, options, any number of further ones, a hyphen, type,
    /// source, and options.
    fn parse(line: &'a str) -> Option<Self> {
        let (place, mounted) = line.split_once(" - ")?;
        let mut place = place.split(' ');
        Some(Self {
            device: place.nth(2)?,
            point: unescaped(place.nth(1)?),
            kind: mounted.split(' ').next()?,
        })
    }
}

/// A path as it is: the list has white space and backslashes of it as three octal digits.
fn unescaped(path: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .into_iter()
    .fold(path.to_owned(), |path, (escaped, plain)| {
        path.replace(escaped, plain)
    })
}

#[cfg(test)]
impl DiskKind {
    /// One that a process serves, mounted as this.
    pub(super) fn served(mounted_as: &str) -> Self {
        Self {
            magic: FUSE,
            mounted_as: Some(mounted_as.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:51 / /mnt rw,nosuid,nodev shared:2 master:1 - fuse.sshfs me@host:/srv rw,user_id=0
41 40 0:52 / /mnt/my\\040disk rw - fuse.mergerfs /disk1:/disk2 rw
42 27 0:53 / /share rw - virtiofs share rw
43 42 0:54 / /share rw - fuse.rclone remote: rw
44 27 0:55 / /mnt2 rw - fuseblk /dev/sdb1 rw";

    fn numbered(magic: i64) -> DiskKind {
        DiskKind {
            magic,
            mounted_as: None,
        }
    }

    #[test]
    fn file_systems_of_a_network_are_refused_by_name() {
        for (magic, name) in [(0x6969, "NFS"), (0x0102_1997, "9P"), (0x0116_1970, "GFS2")] {
            let refused = numbered(magic).refuse_network();
            let refused = refused.expect_err(name).to_string();
            assert!(
                refused.contains(name) && refused.contains("store.url"),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_a_process_serves_is_refused_unless_it_is_known_to_be_of_this_machine() {
        for refused in [
            "fuse.sshfs",
            "fuse.glusterfs",
            "fuse.s3fs",
            "fuse.rclone",
            "fuse",
            "virtiofs",
            "fuse.newest",
        ] {
            let words = DiskKind::served(refused).refuse_network();
            let words = words.expect_err(refused).to_string();
            assert!(words.contains(&format!("type {refused},")), "{words}");
            assert!(words.contains("store.url"), "{words}");
        }
        for taken in [
            "fuseblk",
            "fuse.ntfs-3g",
            "fuse.mergerfs",
            "fuse.fuse-overlayfs",
        ] {
            assert_eq!(DiskKind::served(taken).refuse_network(), Ok(()), "{taken}");
        }
        let unlisted = numbered(FUSE).refuse_network();
        unlisted.expect_err("a mount that is not listed may be anything");
    }

    #[test]
    fn a_folder_is_on_the_mount_that_has_its_device() {
        for (device, kind) in [
            ("254:0", "ext4"),
            ("0:51", "fuse.sshfs"),
            ("0:53", "virtiofs"),
        ] {
            let found = mounted_as(LISTED, device, Path::new("/elsewhere"));
            assert_eq!(found.as_deref(), Some(kind));
        }
    }

    #[test]
    fn a_folder_of_an_unlisted_device_is_on_the_nearest_mount_above_it() {
        for (folder, kind) in [
            ("/mnt/store", "fuse.sshfs"),
            ("/mnt/my disk/store", "fuse.mergerfs"),
            ("/mnt2/store", "fuseblk"),
            ("/mnt3/store", "ext4"),
            ("/share/store", "fuse.rclone"),
        ] {
            let found = mounted_as(LISTED, "0:99", Path::new(folder));
            assert_eq!(found.as_deref(), Some(kind), "{folder}");
        }
        assert_eq!(mounted_as("", "0:99", Path::new("/store")), None);
    }

    #[test]
    fn a_disk_of_this_machine_is_not_refused() {
        // ext4, XFS, btrfs, tmpfs, overlayfs.
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(numbered(kind).refuse_network(), Ok(()), "{kind:#x}");
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let kind = DiskKind::of(folder.path()).expect("is read");
        assert_eq!(kind.refuse_network(), Ok(()));
    }
}
