//! Compiler identity: which rustc made a binary, and which one this repository pins.

use anyhow::{Context, Result};

use crate::command::{capture, command};
use crate::repo::Repo;

/// Digits of a commit hash.
const HASH_DIGITS: usize = 40;

/// The commit of the rustc that `rust-toolchain.toml` pins.
pub fn pinned_commit(repo: &Repo) -> Result<String> {
    let version = capture(command(repo, "rustc").arg("-vV"))?;
    let commit = version
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "));
    commit
        .map(str::to_owned)
        .context("`rustc -vV` names no commit hash")
}

/// The commit of the rustc that built `binary`.
///
/// Every Rust binary holds paths of its standard library, `/rustc/<commit>/library/...`, for panic messages. One library
/// is linked into a binary, so the first path speaks for all.
pub fn commit_in(binary: &[u8]) -> Option<&str> {
    let prefix = b"/rustc/";
    let mut rest = binary;
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        rest = &rest[slash..];
        if let Some(hash) = rest.strip_prefix(prefix).and_then(hash_before_library) {
            return Some(hash);
        }
        rest = &rest[1..];
    }
    None
}

fn hash_before_library(after_prefix: &[u8]) -> Option<&str> {
    let (hash, path) = after_prefix.split_at_checked(HASH_DIGITS)?;
    let is_hash = hash
        .iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_hash || !path.starts_with(b"/library/") {
        return None;
    }
    std::str::from_utf8(hash).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

    #[test]
    fn finds_the_commit_between_other_bytes() {
        let mut binary = vec![0xff, b'/', 0, b'/', b'r'];
        binary.extend(format!("/rustc/{HASH}/library/core/src/fmt/mod.rs").bytes());
        binary.extend([0, b'/', 0xfe]);
        assert_eq!(commit_in(&binary), Some(HASH));
    }

    #[test]
    fn skips_what_only_begins_alike() {
        let short = "/rustc/5980/library/";
        let upper = format!("/rustc/{}/library/", HASH.to_uppercase());
        let elsewhere = format!("/rustc/{HASH}/compiler/");
        for text in ["", "/rustc/", short, &upper, &elsewhere] {
            assert_eq!(commit_in(text.as_bytes()), None, "{text}");
        }
        let then_real = format!("{short}{upper}/rustc/{HASH}/library/");
        assert_eq!(commit_in(then_real.as_bytes()), Some(HASH));
    }

    #[test]
    fn a_hash_cut_off_by_the_end_is_none() {
        let whole = format!("/rustc/{HASH}/library/");
        for end in 0..whole.len() {
            assert_eq!(commit_in(&whole.as_bytes()[..end]), None, "{end}");
        }
    }

    #[test]
    fn the_binary_of_this_test_names_the_pinned_compiler() {
        let own = std::env::current_exe().expect("a running process has a file");
        let bytes = std::fs::read(own).expect("readable");
        let repo = Repo::locate().expect("the tests run in the checkout");
        let pinned = pinned_commit(&repo).expect("rustc is installed");
        assert_eq!(commit_in(&bytes), Some(pinned.as_str()));
    }
}
