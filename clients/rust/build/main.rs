//! Generator of the client's wire types and operations, from the document in which the service describes itself.
//!
//! What the client sends and reads cannot differ from what the service says: neither is written by hand.

mod names;
mod operations;
mod types;

use std::{env, error::Error, fs, path::PathBuf};

use serde_json::Value;

/// The service's description of itself, beside the manifest.
const DOCUMENT: &str = "openapi.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DOCUMENT}");
    println!("cargo::rerun-if-changed=build");
    let text = fs::read_to_string(DOCUMENT)?;
    let document: Value = serde_json::from_str(&text)?;
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for output")?);
    fs::write(folder.join("wire.rs"), types::module(&document))?;
    fs::write(folder.join("operations.rs"), operations::module(&document))?;
    fs::write(folder.join("trials.rs"), operations::trials(&document))?;
    Ok(())
}
