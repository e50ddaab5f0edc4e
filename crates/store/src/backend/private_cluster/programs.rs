//! Programs of PostgreSQL: where they are, and the account that runs them.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use super::{ClusterError, file_error};

/// Where Debian keeps the programs, one folder per major version.
pub(super) const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// Accounts that may stand in for root, the first that exists.
const STAND_INS: [&str; 2] = ["postgres", "nobody"];

/// The server's programs, and who runs them.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) account: Option<Account>,
}

/// An account that is not root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) user: u32,
    pub(super) group: u32,
}

impl Programs {
    pub(super) fn find() -> Result<Self, ClusterError> {
        // The owner of a process's own entry is who it runs as.
        let me = Path::new("/proc/self");
        let is_root = fs::metadata(me)
            .map_err(|source| file_error(me, source))?
            .uid()
            == 0;
        let account = if is_root {
            Some(stand_in().ok_or(ClusterError::NoStandIn)?)
        } else {
            None
        };
        let programs = Self { account };
        for program in ["initdb", "pg_ctl"] {
            programs.path(program)?;
        }
        Ok(programs)
    }

    /// Debian's newest version first: a program on PATH may be a wrapper around another cluster.
    pub(super) fn path(&self, program: &'static str) -> Result<PathBuf, ClusterError> {
        let versions = fs::read_dir(DEBIAN_VERSIONS).into_iter().flatten();
        let mut versions: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
            })
            .collect();
        versions.sort();
        let on_path = env::var_os("PATH").unwrap_or_default();
        versions
            .into_iter()
            .rev()
            .map(|(_, path)| path)
            .chain(env::split_paths(&on_path))
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())
            .ok_or(ClusterError::NotInstalled { program })
    }

    pub(super) fn command(&self, program: &'static str) -> Result<Command, ClusterError> {
        Ok(self.as_account(Command::new(self.path(program)?)))
    }

    pub(super) fn as_account(&self, mut command: Command) -> Command {
        if let Some(account) = self.account {
            command.uid(account.user).gid(account.group);
        }
        // A folder that the account may enter; the caller's may be closed to it.
        command.current_dir("/");
        command
    }

    /// Makes a folder that belongs to the account. Under a folder that the account cannot enter, it is
    /// replaced by one of the same name under the system's folder for temporary files.
    pub(super) fn own_folder(&self, folder: &Path) -> Result<PathBuf, ClusterError> {
        fs::create_dir_all(folder).map_err(|source| file_error(folder, source))?;
        let folder = folder
            .canonicalize()
            .map_err(|source| file_error(folder, source))?;
        let Some(account) = self.account else {
            return Ok(folder);
        };
        let enterable = folder.ancestors().skip(1).all(|ancestor| {
            fs::metadata(ancestor).is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
        });
        let place = if enterable {
            folder
        } else {
            let mut name = OsString::from("sluice");
            for part in folder.components().skip(1) {
                name.push("-");
                name.push(part.as_os_str());
            }
            env::temp_dir().join(name)
        };
        fs::create_dir_all(&place).map_err(|source| file_error(&place, source))?;
        chown(&place, Some(account.user), Some(account.group))
            .map_err(|source| file_error(&place, source))?;
        Ok(place)
    }
}

fn stand_in() -> Option<Account> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    STAND_INS.iter().find_map(|name| {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == *name).then_some(())?;
            let (user, group) = (fields.nth(1)?, fields.next()?);
            Some(Account {
                user: user.parse().ok()?,
                group: group.parse().ok()?,
            })
        })
    })
}
