//! Configuration of the Geyser plugin, filled in from a template.
//!
//! A template is the configuration file of any plugin, with [`LIBPATH`] where it names the shared library and
//! [`ADDRESS`] where it says on which IP address and port to serve gRPC. What else it says is the plugin's own.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Placeholder for the plugin's shared library, inside a JSON text.
pub const LIBPATH: &str = "{{libpath}}";

/// Placeholder for the IP address and port to serve on, as `127.0.0.1:10000`, inside a JSON text.
pub const ADDRESS: &str = "{{address}}";

/// Why a template cannot be used.
#[derive(Debug, Error)]
pub enum TemplateError {
    /// It cannot be read.
    #[error("cannot read the Geyser plugin's configuration {path}: {source}")]
    Read {
        /// The template.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// It would leave the plugin somewhere else than it is looked for.
    #[error(
        "the Geyser plugin's configuration {path} has no {placeholder}: {}",
        purpose(.placeholder)
    )]
    Placeholder {
        /// The template.
        path: PathBuf,
        /// What it lacks.
        placeholder: &'static str,
    },
}

fn purpose(placeholder: &str) -> &'static str {
    if placeholder == ADDRESS {
        "it has to stand where the configuration says on which address and port to serve gRPC"
    } else {
        "it has to stand where the configuration names the plugin's shared library"
    }
}

/// Fills in the template at `path`.
///
/// # Errors
/// [`TemplateError`] when it cannot be read or lacks a placeholder.
pub fn fill(path: &Path, library: &Path, address: SocketAddr) -> Result<String, TemplateError> {
    let template = fs::read_to_string(path).map_err(|source| TemplateError::Read {
        path: path.to_owned(),
        source,
    })?;
    let values = [
        (LIBPATH, escaped(&library.to_string_lossy())),
        (ADDRESS, address.to_string()),
    ];
    values
        .iter()
        .try_fold(template, |text, (placeholder, value)| {
            if text.contains(placeholder) {
                Ok(text.replace(placeholder, value))
            } else {
                Err(TemplateError::Placeholder {
                    path: path.to_owned(),
                    placeholder,
                })
            }
        })
}

/// The text as it stands between the quotes of a JSON text.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .trim_start_matches('"')
        .strip_suffix('"')
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::repository_root;

    const SERVED: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 10_000);

    fn filled(template: &str, library: &str) -> Result<String, TemplateError> {
        let folder = tempfile::tempdir().expect("temporary folder can be made");
        let path = folder.path().join("plugin.json5");
        fs::write(&path, template).expect("temporary folder is writable");
        fill(&path, Path::new(library), SERVED)
    }

    #[test]
    fn both_placeholders_are_filled_wherever_they_stand() {
        let template = r#"{"libpath": "{{libpath}}", "grpc": {"listen": ["{{address}}"], "x": 1}}"#;
        let text = filled(template, "/lib/p.so").expect("both are there");
        let expected =
            r#"{"libpath": "/lib/p.so", "grpc": {"listen": ["127.0.0.1:10000"], "x": 1}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_path_with_quotes_stays_one_text() {
        let text = filled(r#"["{{libpath}}", "{{address}}"]"#, "/\"odd\"\\").expect("filled");
        let values: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(values, ["/\"odd\"\\", "127.0.0.1:10000"]);
    }

    #[test]
    fn what_a_template_lacks_is_named_with_what_it_is_for() {
        let error = filled(r#"{"libpath": "{{libpath}}"}"#, "/p").expect_err("no address");
        let text = error.to_string();
        assert!(
            text.contains("plugin.json5") && text.contains(ADDRESS),
            "{text}"
        );
        assert!(text.contains("serve gRPC"), "{text}");
        let error = filled(r#"{"address": "{{address}}"}"#, "/p").expect_err("no library");
        assert!(error.to_string().contains(LIBPATH), "{error}");
    }

    #[test]
    fn a_template_that_is_not_there_is_named() {
        let error = fill(Path::new("/nowhere.json"), Path::new("/p"), SERVED);
        let text = error.expect_err("missing").to_string();
        assert!(text.contains("/nowhere.json"), "{text}");
    }

    #[test]
    fn our_own_template_has_both() {
        let template = repository_root().join("geyser-plugin/config.json5");
        let text = fill(&template, Path::new("/p"), SERVED).expect("the repository's own");
        assert!(text.contains("libpath: \"/p\"") && text.contains("\"127.0.0.1:10000\""));
        assert!(!text.contains("\"{{"), "{text}");
    }
}
