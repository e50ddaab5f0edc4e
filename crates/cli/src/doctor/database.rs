//! Check of the database: that it can be opened, and which schema it has.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, access};
use secrecy::ExposeSecret;
use sluice_config::Database;
use sluice_store::{SchemaVersion, Store};

use super::report::Finding;

/// Looks at the database, and changes nothing.
pub async fn check(database: Database<'_>) -> Finding {
    let schema = match database {
        Database::File(path) => match Store::schema_of_file(path).await {
            Ok(Some(schema)) => Ok(schema),
            Ok(None) => return absent(path),
            Err(error) => Err(error),
        },
        Database::Server(url) => Store::schema_of_server(url.expose_secret()).await,
    };
    match schema {
        Ok(schema) => judge(schema),
        Err(error) => Finding::failed(
            &error.into(),
            "start the database, or correct the [store] section",
        ),
    }
}

fn judge(SchemaVersion { applied, known }: SchemaVersion) -> Finding {
    match applied.cmp(&known) {
        Ordering::Equal => Finding::Well(format!("schema {applied}")),
        Ordering::Less => Finding::Well(format!(
            "schema {applied}, which the next start brings to {known}"
        )),
        Ordering::Greater => Finding::broken(
            format!(
                "schema {applied}, and this release knows {known}: a newer one has migrated it"
            ),
            "start the newer release, or restore a backup from before",
        ),
    }
}

/// A file that is still to be created.
fn absent(path: &Path) -> Finding {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let folder = absolute.ancestors().skip(1).find(|folder| folder.exists());
    let folder = folder.unwrap_or(Path::new("/"));
    match access(folder, AccessFlags::W_OK) {
        Ok(()) => Finding::Well(format!("{} will be created", path.display())),
        Err(error) => Finding::broken(
            format!(
                "{} cannot be created: {} is not writable ({})",
                path.display(),
                folder.display(),
                error.desc()
            ),
            "name another place in store.path, or let the user of this process write there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_schema_is_brought_up_to_date_and_a_newer_one_is_not() {
        let judged = |applied| judge(SchemaVersion { applied, known: 9 });
        assert!(matches!(judged(9), Finding::Well(_)));
        assert!(matches!(judged(0), Finding::Well(_)));
        assert!(matches!(judged(10), Finding::Broken { .. }));
    }
}
