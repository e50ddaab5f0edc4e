//! Licences of what is linked into the program, with the texts that its packages carry.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::parts::Parts;

/// How the names of files begin that hold terms, in capitals.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// The file's text: each package with its licence, then each text once, with the packages that carry it.
pub fn text(parts: &Parts) -> Result<String> {
    let mut list =
        "Sluice is licensed under the Apache License 2.0. These packages are linked into it:\n\n"
            .to_owned();
    let mut carriers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in &parts.all {
        let name = format!("{} {}", part.name, part.version);
        let texts = texts(&part.folder)?;
        ensure!(
            part.licence.is_some() || !texts.is_empty(),
            "{name} is linked into the program and names no licence"
        );
        let licence = part.licence.as_deref().unwrap_or("see its text below");
        let note = if texts.is_empty() {
            " (its package carries no text)"
        } else {
            ""
        };
        writeln!(list, "{name}: {licence}{note}")?;
        for text in texts {
            carriers.entry(text).or_default().push(name.clone());
        }
    }
    list += "\nThe program has the standard library of Rust in it as well: MIT OR Apache-2.0.\n";
    let mut texts: Vec<_> = carriers.into_iter().collect();
    texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, carriers) in texts {
        let line = "-".repeat(80);
        write!(
            list,
            "\n{line}\n{}\n{line}\n\n{text}\n",
            carriers.join(", ")
        )?;
    }
    Ok(list)
}

/// The texts in a package's folder, in order of their names.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let unread = || format!("cannot read {}", folder.display());
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(unread)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && is_terms(path))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let bytes =
                fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            Ok(String::from_utf8_lossy(&bytes)
                .replace("\r\n", "\n")
                .trim()
                .to_owned())
        })
        .collect()
}

fn is_terms(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_uppercase());
    name.is_some_and(|name| NAMES.iter().any(|begin| name.starts_with(begin)))
}

#[cfg(test)]
mod tests {
    use super::super::parts::Part;
    use super::*;

    fn part(name: &str, licence: Option<&str>, folder: &Path) -> Part {
        Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            checksum: None,
            folder: folder.to_path_buf(),
            uses: Vec::new(),
        }
    }

    #[test]
    fn a_text_stands_once_and_a_package_without_terms_is_refused() {
        let root = std::env::temp_dir().join(format!("xtask-licences-{}", std::process::id()));
        let folders = ["one", "two", "bare"].map(|name| root.join(name));
        for folder in &folders {
            fs::create_dir_all(folder).expect("writable");
        }
        fs::write(folders[0].join("LICENSE-MIT"), "the terms\r\n").expect("writable");
        fs::write(folders[1].join("license"), "the terms\n").expect("writable");
        let parts = |licence| Parts {
            version: "1.0.0".to_owned(),
            all: vec![
                part("one", Some("MIT"), &folders[0]),
                part("two", None, &folders[1]),
                part("bare", licence, &folders[2]),
            ],
        };
        let written = text(&parts(Some("MIT"))).expect("all have terms");
        assert_eq!(written.matches("the terms").count(), 1);
        assert!(written.contains("one 1.0.0, two 1.0.0"), "{written}");
        let error = text(&parts(None)).expect_err("bare has none");
        assert!(error.to_string().starts_with("bare 1.0.0"), "{error}");
        fs::remove_dir_all(root).expect("the folder is ours");
    }
}
