//! A database that a newer release has migrated is refused in one clear line.

use std::path::Path;

use sluice_store::{Store, StoreError, testing::PrivateCluster};
use sqlx::{Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

/// A migration of a release to come.
const APPLIED: &str =
    "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    VALUES (9001, 'of a release to come', TRUE, '', 0)";

fn assert_refused(opened: Result<Store, StoreError>) {
    let error = opened.expect_err("refused");
    assert!(
        matches!(error, StoreError::NewerSchema { version: 9001, .. }),
        "{error}"
    );
    let line = error.to_string();
    assert!(
        line.contains("schema 9001") && line.contains("newer"),
        "{line}"
    );
}

#[tokio::test]
async fn an_sqlite_file_of_a_newer_release_is_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("sluice.db");
    Store::open(&path).await.expect("opens").close().await;
    let options = SqliteConnectOptions::new().filename(&path);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("opens");
    sqlx::query(APPLIED)
        .execute(&mut connection)
        .await
        .expect("migrates");
    connection.close().await.expect("closes");
    assert_refused(Store::open(&path).await);
}

#[tokio::test]
async fn a_postgresql_database_of_a_newer_release_is_refused() {
    let cluster = PrivateCluster::shared(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let cluster = cluster.expect("PostgreSQL starts");
    let name = format!("newer_{}", std::process::id());
    let url = cluster.create_database(&name).await.expect("creates");
    Store::connect(&url).await.expect("connects").close().await;
    let mut connection = PgConnection::connect(&url).await.expect("connects");
    sqlx::query(APPLIED)
        .execute(&mut connection)
        .await
        .expect("migrates");
    connection.close().await.expect("closes");
    assert_refused(Store::connect(&url).await);
}
