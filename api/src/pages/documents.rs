//! Documents: serves those of `docs/` as Markdown, and lists them for language models in `llms.txt`.

use std::{fmt::Write, sync::LazyLock};

use axum::{Router, extract::Path, response::Response, routing::get};

use super::page;
use crate::error::ApiError;

/// A document of `docs/`, built into the binary so that what is served is of the version that serves it.
struct Document {
    name: &'static str,
    text: &'static str,
}

macro_rules! documents {
    ($($name:literal),* $(,)?) => {
        [$(Document { name: $name, text: include_str!(concat!("../../../docs/", $name)) }),*]
    };
}

/// Text loads nothing.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// What users and operators read. How the code is built stands in the repository alone.
static DOCUMENTS: [Document; 8] = documents![
    "api.md",
    "swaps.md",
    "webhooks.md",
    "guard.md",
    "proof.md",
    "operations.md",
    "comparison.md",
    "vocabulary.md",
];

pub fn routes() -> Router {
    Router::new()
        .route("/docs/{name}", get(document))
        .route("/llms.txt", get(list))
}

async fn document(Path(name): Path<String>) -> Result<Response, ApiError> {
    let found = DOCUMENTS.iter().find(|document| document.name == name);
    let document = found.ok_or(ApiError::NoRoute)?;
    Ok(page("text/markdown; charset=utf-8", POLICY, document.text))
}

async fn list() -> Response {
    static LIST: LazyLock<String> = LazyLock::new(llms_txt);
    page("text/plain; charset=utf-8", POLICY, LIST.as_str())
}

/// The list in the form of llmstxt.org: what this is, then links, each with what is found there.
fn llms_txt() -> String {
    let mut text = String::from(
        "# Sluice\n\n\
         > Exact quotes, unsigned transactions and bare instructions for swaps through Raydium CPMM on Solana, under an \
         on-chain guard; and signed webhooks about what happens there.\n\n\
         ## API\n\n\
         - [OpenAPI document](/openapi.json): every operation with its fields, limits and errors\n\
         - [Reference](/docs): the same for people, to try in a browser\n\n\
         ## Documents\n\n",
    );
    for document in &DOCUMENTS {
        let (title, about) = title(document.text);
        let about = about.map_or(String::new(), |about| format!(": {about}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- [{title}](/docs/{}){about}", document.name);
    }
    text
}

/// The title in the first line of a document, and what it is about where that is said after a colon.
fn title(text: &str) -> (&str, Option<&str>) {
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches("# ");
    match line.split_once(": ") {
        Some((title, about)) => (title, Some(about)),
        None => (line, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_begins_with_a_title() {
        for document in &DOCUMENTS {
            assert!(document.text.starts_with("# "), "{}", document.name);
            assert!(!title(document.text).0.is_empty(), "{}", document.name);
        }
    }

    #[test]
    fn the_list_says_what_each_document_is_about() {
        let list = llms_txt();
        let line = list
            .lines()
            .find(|line| line.contains("/docs/swaps.md"))
            .expect("a line of it");
        assert!(line.starts_with("- [Swaps](/docs/swaps.md): "), "{line}");
    }
}
