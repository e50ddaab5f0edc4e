//! Generator of the list of migrations, with the SQL of each inside, so that the program needs no folder beside it.
//!
//! The library's own macro for it is compiled with both databases' drivers once more, for the machine that builds.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Folder of the steps of each database, by the name of the list that is made of it.
const FOLDERS: [(&str, &str); 2] = [
    ("SQLITE", "migrations/sqlite"),
    ("POSTGRES", "migrations/postgres"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut module = String::new();
    for (list, folder) in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        writeln!(module, "const {list}: &[(i64, &str, &str)] = &[")?;
        for file in files(Path::new(folder))? {
            let (number, description) = name(&file)?;
            let sql = fs::read_to_string(&file)?;
            writeln!(module, "    ({number}, {description:?}, {sql:?}),")?;
        }
        writeln!(module, "];")?;
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no folder for output")?);
    fs::write(folder.join("migrations.rs"), module)?;
    Ok(())
}

/// Files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

/// Number and description of a migration by its file, `0001_some_words.sql`.
fn name(file: &Path) -> Result<(i64, String), Box<dyn Error>> {
    let refused = || format!("{} is not named like 0001_some_words.sql", file.display());
    let stem = file.file_name().and_then(|name| name.to_str());
    let stem = stem.and_then(|name| name.strip_suffix(".sql"));
    let (number, words) = stem
        .and_then(|stem| stem.split_once('_'))
        .ok_or_else(refused)?;
    Ok((
        number.parse().map_err(|_| refused())?,
        words.replace('_', " "),
    ))
}
