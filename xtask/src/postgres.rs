//! PostgreSQL's programs and pgbouncer, which the tests of the store need to start a private server and a pooler before it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::on_path;
use crate::packages::Package;

/// Where Debian keeps the programs, one folder per major version.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// The program without which no server can be set up.
const PROGRAM: &str = "initdb";

/// The server, which brings its client.
const SERVER: Package = Package {
    prepare: Some(keep_from_starting),
    ..Package::named("postgresql")
};

/// The pooler, by its program: where Debian keeps that, PATH need not lead.
const POOLER: Package = Package {
    prepare: Some(keep_pooler_from_starting),
    ..Package::named("pgbouncer")
};
const POOLER_PROGRAM: &str = "pgbouncer";
const DEBIAN_POOLER: &str = "/usr/sbin/pgbouncer";

/// The unit that Debian's package of the pooler starts when it is installed, and what takes its place: a link to nothing,
/// which an administrator who wants the pooler takes away by `systemctl unmask pgbouncer`.
const POOLER_UNIT: &str = "/etc/systemd/system/pgbouncer.service";
const NOTHING: &str = "/dev/null";

/// The setting that decides whether Debian's package makes and starts a server of its own when it is installed.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Installing the programs must not leave a server running that was not asked for.
const NO_CLUSTER: &str = "\
# Written before the package postgresql was installed for the tests of Sluice, which start a private server:
# no server is made and started by the installation itself.
create_main_cluster = false
";

/// System packages that are due because programs of the server or the pooler are missing.
pub fn packages_needed() -> Vec<Package> {
    let server = on_path(PROGRAM).is_some() || has_version(Path::new(DEBIAN_VERSIONS));
    let pooler = on_path(POOLER_PROGRAM).is_some() || Path::new(DEBIAN_POOLER).is_file();
    [(server, SERVER), (pooler, POOLER)]
        .into_iter()
        .filter_map(|(is_there, package)| (!is_there).then_some(package))
        .collect()
}

/// Keeps the installation of the pooler from starting one, unless there is a unit of that name already.
fn keep_pooler_from_starting() -> Result<()> {
    let unit = Path::new(POOLER_UNIT);
    if fs::symlink_metadata(unit).is_ok() {
        return Ok(());
    }
    let fault = || format!("cannot make {POOLER_UNIT}");
    if let Some(folder) = unit.parent() {
        fs::create_dir_all(folder).with_context(fault)?;
    }
    symlink(NOTHING, unit).with_context(fault)
}

/// Keeps the installation of the package from starting a server, unless that has been decided already.
fn keep_from_starting() -> Result<()> {
    let settings = Path::new(CLUSTER_SETTINGS);
    if settings.exists() {
        return Ok(());
    }
    let fault = || format!("cannot write {CLUSTER_SETTINGS}");
    if let Some(folder) = settings.parent() {
        fs::create_dir_all(folder).with_context(fault)?;
    }
    fs::write(settings, NO_CLUSTER).with_context(fault)
}

fn has_version(versions: &Path) -> bool {
    fs::read_dir(versions)
        .into_iter()
        .flatten()
        .flatten()
        .any(|version| version.path().join("bin").join(PROGRAM).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_counts_only_with_its_programs() {
        let folder = std::env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        let programs = folder.join("15/bin");
        fs::create_dir_all(&programs).expect("the temporary folder is writable");
        assert!(!has_version(&folder), "a client alone has no such program");
        fs::write(programs.join(PROGRAM), "").expect("the folder is ours");
        assert!(has_version(&folder));
        fs::remove_dir_all(&folder).expect("the folder is ours");
        assert!(!has_version(&folder));
    }
}
