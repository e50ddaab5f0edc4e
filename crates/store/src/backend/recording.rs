//! Recording: writes down the statements that tests run, for the next release to be held to.

use std::{env, fs::OpenOptions, io::Write, path::PathBuf};

/// Names the folder that is recorded to.
const RECORD: &str = "SLUICE_RECORD_STATEMENTS";

/// Adds a statement to the database's file, as a line of JSON.
///
/// # Panics
/// When it cannot be written.
pub(super) fn record(database: &str, statement: &str) {
    let Some(folder) = env::var_os(RECORD) else {
        return;
    };
    let path = PathBuf::from(folder).join(format!("{database}.jsonl"));
    let line = serde_json::to_string(statement).expect("a text") + "\n";
    let mut file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.as_mut().map(|file| file.write_all(line.as_bytes()));
    assert!(matches!(written, Ok(Ok(()))), "{RECORD}: {written:?}");
}
