//! PostgreSQL's programs, which the tests of the store need to start a private server.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command::on_path;
use crate::packages::Package;

/// Where Debian keeps the programs, one folder per major version.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// The program without which no server can be set up.
const PROGRAM: &str = "initdb";

/// The server, which brings its client.
const PACKAGES: [Package; 1] = [Package {
    prepare: Some(keep_from_starting),
    ..Package::named("postgresql")
}];

/// The setting that decides whether Debian's package makes and starts a server of its own when it is installed.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

/// Installing the programs must not leave a server running that was not asked for.
const NO_CLUSTER: &str = "\
# Written before the package postgresql was installed for the tests of Sluice, which start a private server:
# no server is made and started by the installation itself.
create_main_cluster = false
";

/// System packages that are due because the server's programs are missing.
pub fn packages_needed() -> &'static [Package] {
    if on_path(PROGRAM).is_some() || has_version(Path::new(DEBIAN_VERSIONS)) {
        &[]
    } else {
        &PACKAGES
    }
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
