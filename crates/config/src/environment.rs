//! Environment: settings of the file that variables replace, or read from files of their own.
//!
//! `SLUICE_STORE__URL` is `store.url`: two underscores stand for a dot, one for a hyphen, and an element of a list has its
//! number, `SLUICE_GEYSER__ENDPOINTS__0__X_TOKEN`. With `_FILE` behind its name a variable names a file that holds the
//! value, as the secrets of containers do. A value is text, read as what its setting needs; an empty one takes the
//! setting out of the file.

mod node;

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

pub(crate) use self::node::Node;

/// What the name of every variable begins with.
const PREFIX: &str = "SLUICE_";

/// What separates a section from its setting. A variable without one is not a setting's.
const SEPARATOR: &str = "__";

/// What the name of a variable ends with that names a file.
const OF_FILE: &str = "_FILE";

/// Most elements of a list that variables may name: more than any list of the file has.
const MAX_ELEMENTS: usize = 128;

/// Why the environment was refused. No message has a value, which may be a secret.
#[derive(Debug, Error)]
pub enum EnvironmentError {
    /// A value is not text.
    #[error("the environment variable {name} is not UTF-8: write its value in UTF-8")]
    NotText {
        /// The variable.
        name: String,
    },
    /// The file that holds a value could not be read.
    #[error("the environment variable {name} names the file {}: {source}", path.display())]
    File {
        /// The variable.
        name: String,
        /// What it names.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A setting is given twice.
    #[error(
        "the environment variables {name} and {name}{OF_FILE} give the same setting: leave one out"
    )]
    Twice {
        /// The variable without the ending.
        name: String,
    },
    /// The name of a variable leads nowhere.
    #[error("the environment variable {name} names no setting: {reason}")]
    NoSetting {
        /// The variable.
        name: String,
        /// Why not.
        reason: &'static str,
    },
}

/// A setting's new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Override {
    /// The variable without `_FILE`.
    name: String,
    value: String,
}

/// The overrides of this process's environment.
pub(crate) fn of_process() -> Result<Vec<Override>, EnvironmentError> {
    overrides(env::vars_os(), |path| fs::read_to_string(path))
}

/// The overrides among these variables, in order of their names.
fn overrides(
    variables: impl Iterator<Item = (OsString, OsString)>,
    read: impl Fn(&Path) -> io::Result<String>,
) -> Result<Vec<Override>, EnvironmentError> {
    let mut found: Vec<Override> = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| is_setting(name)) else {
            continue;
        };
        let name = name.to_owned();
        let Ok(value) = value.into_string() else {
            return Err(EnvironmentError::NotText { name });
        };
        found.push(match name.strip_suffix(OF_FILE) {
            None => Override { name, value },
            Some(setting) => {
                let path = PathBuf::from(value);
                let setting = setting.to_owned();
                let text = read(&path).map_err(|source| EnvironmentError::File {
                    name: name.clone(),
                    path,
                    source,
                })?;
                // Editors end a file with a new line, which is no part of a secret.
                let value = text.trim_end_matches(['\r', '\n']).to_owned();
                Override {
                    name: setting,
                    value,
                }
            }
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(twice) = found.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let name = twice[0].name.clone();
        return Err(EnvironmentError::Twice { name });
    }
    Ok(found)
}

fn is_setting(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.contains(SEPARATOR))
}

/// What the file says, with the overrides in place.
pub(crate) fn apply(file: toml::Table, overrides: &[Override]) -> Result<Node, EnvironmentError> {
    let mut root = Node::from(toml::Value::Table(file));
    for Override { name, value } in overrides {
        let refused = |reason| EnvironmentError::NoSetting {
            name: name.clone(),
            reason,
        };
        let parts = name[PREFIX.len()..].split(SEPARATOR);
        let keys: Vec<_> = parts
            .map(|part| part.to_ascii_lowercase().replace('_', "-"))
            .collect();
        if keys.iter().any(String::is_empty) {
            return Err(refused("a part of its name is empty"));
        }
        set(&mut root, &keys, value).map_err(refused)?;
    }
    Ok(root)
}

/// A message without the values of variables, which some settings quote when they refuse them.
pub(crate) fn redacted(message: &str, overrides: &[Override]) -> String {
    let values = overrides.iter().map(|each| each.value.as_str());
    values
        .filter(|value| !value.is_empty())
        .fold(message.to_owned(), |message, value| {
            message.replace(&format!("{value:?}"), "REDACTED")
        })
}

/// Puts a value at the place that the keys lead to.
fn set(node: &mut Node, keys: &[String], value: &str) -> Result<(), &'static str> {
    let Some((key, rest)) = keys.split_first() else {
        *node = Node::Text(value.to_owned());
        return Ok(());
    };
    let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
    match node {
        Node::List(elements) => {
            let index: usize = key
                .parse()
                .map_err(|_| "an element of a list is named by its number")?;
            if index >= MAX_ELEMENTS || index > elements.len() {
                return Err("the elements of a list are numbered from 0, and none is left out");
            }
            if index == elements.len() {
                elements.push(Node::empty());
            }
            set(&mut elements[index], rest, value)
        }
        Node::Table(entries) => {
            if entries.is_empty() && is_number {
                *node = Node::List(Vec::new());
                return set(node, keys, value);
            }
            if rest.is_empty() && value.is_empty() {
                entries.remove(key);
                return Ok(());
            }
            let entry = entries.entry(key.clone()).or_insert_with(Node::empty);
            set(entry, rest, value)
        }
        Node::Text(_) | Node::Scalar(_) => Err("what comes before its last part is no section"),
    }
}

#[cfg(test)]
mod tests;
