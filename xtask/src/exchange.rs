//! The exchange's program: the stand-in of this repository, or the file that replaces it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

/// Names the program that replaces the stand-in, on the local chain and in every test.
const REPLACEMENT: &str = "CPMM_SO";

/// The replacement, if one is named, as a path that holds in every working directory.
pub fn replacement() -> Result<Option<PathBuf>> {
    let Some(named) = env::var_os(REPLACEMENT).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    existing(Path::new(&named)).map(Some)
}

/// Hands the replacement on: tests and the local chain run in other folders than the one it was named in.
pub fn hand_on(replacement: Option<&Path>, command: &mut Command) {
    if let Some(file) = replacement {
        command.env(REPLACEMENT, file);
    }
}

fn existing(named: &Path) -> Result<PathBuf> {
    let file = std::path::absolute(named)?;
    if !file.is_file() {
        bail!("{REPLACEMENT} names {}, which is no file", file.display());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_becomes_absolute() {
        let file = existing(Path::new("Cargo.toml")).expect("tests run in the crate's folder");
        assert!(file.is_absolute(), "{}", file.display());
    }

    #[test]
    fn refuses_what_is_no_file() {
        let error = existing(Path::new("/no/such/exchange.so")).expect_err("not there");
        assert!(error.to_string().contains("/no/such/exchange.so"));
        assert!(existing(Path::new("/")).is_err());
    }
}
