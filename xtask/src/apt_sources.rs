//! APT sources of the machine, read to find the mirror it already trusts and reaches.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// One archive that apt is set up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub uri: String,
    pub suites: Vec<String>,
    pub components: Vec<String>,
}

/// The mirror that serves the machine's own release, and so serves the other suites of the distribution as well.
///
/// Security and update suites are skipped: their archives hold nothing but themselves.
pub fn mirror<'a>(sources: &'a [Source], release: &str) -> Option<&'a str> {
    let is_main = |source: &&Source| {
        source.suites.iter().any(|suite| suite == release)
            && source
                .components
                .iter()
                .any(|component| component == "main")
    };
    sources.iter().find(is_main).map(|found| found.uri.as_str())
}

/// All package sources under `/etc/apt`, in the order apt reads them.
pub fn read_sources(etc_apt: &Path) -> Result<Vec<Source>> {
    let mut files = vec![etc_apt.join("sources.list")];
    if let Ok(entries) = fs::read_dir(etc_apt.join("sources.list.d")) {
        let mut parts: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        parts.sort();
        files.extend(parts);
    }
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let parse = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => parse_one_line,
            Some("sources") => parse_deb822,
            _ => continue,
        };
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        sources.extend(parse(&text));
    }
    Ok(sources)
}

/// Parses the `deb [options] uri suite component...` format.
pub fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or(line).trim();
    let rest = line.strip_prefix("deb")?;
    // "deb-src" and any longer word are not binary packages.
    if !rest.starts_with([' ', '\t', '[']) {
        return None;
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source {
        uri: words.next()?,
        suites: vec![words.next()?],
        components: words.collect(),
    })
}

/// Parses the format of `.sources` files: stanzas of `Field: value` lines.
pub fn parse_deb822(text: &str) -> Vec<Source> {
    let without_comments: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::trim_end)
        .collect();
    without_comments
        .split(|line| line.is_empty())
        .flat_map(parse_stanza)
        .collect()
}

fn parse_stanza(lines: &[&str]) -> Vec<Source> {
    let types = field(lines, "Types");
    let is_off = field(lines, "Enabled").iter().any(|value| value == "no");
    if is_off || !types.iter().any(|kind| kind == "deb") {
        return Vec::new();
    }
    let suites = field(lines, "Suites");
    let components = field(lines, "Components");
    let source = |uri| Source {
        uri,
        suites: suites.clone(),
        components: components.clone(),
    };
    field(lines, "URIs").into_iter().map(source).collect()
}

/// The words of a field, those of its indented continuation lines included. Field names ignore case.
fn field(lines: &[&str], name: &str) -> Vec<String> {
    let is_named = |line: &&str| {
        line.split_once(':').is_some_and(|(key, _)| {
            !line.starts_with([' ', '\t']) && key.eq_ignore_ascii_case(name)
        })
    };
    let Some(at) = lines.iter().position(is_named) else {
        return Vec::new();
    };
    let first = lines[at].split_once(':').map_or("", |(_, value)| value);
    let more = lines[at + 1..]
        .iter()
        .take_while(|line| line.starts_with([' ', '\t']));
    std::iter::once(first)
        .chain(more.copied())
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "\
Types: deb
# a comment between the fields
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb deb-src
uris: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
";

    #[test]
    fn finds_the_mirror_in_stanzas() {
        let sources = parse_deb822(STANZAS);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[1].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(
            mirror(&sources, "bookworm"),
            Some("http://mirror.example/debian")
        );
    }

    #[test]
    fn skips_stanzas_that_are_off_or_have_no_binaries() {
        let off = format!("Enabled: no\n{STANZAS}").replace("security\nS", "x\nS");
        assert_eq!(parse_deb822(&off).len(), 1);
        let sources_only = "Types: deb-src\nURIs: http://a.example\nSuites: bookworm\n";
        assert_eq!(parse_deb822(sources_only), []);
    }

    #[test]
    fn finds_the_mirror_in_one_line_format() {
        let text = "\
# deb http://commented.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/a b.gpg] https://mirror.example/debian bookworm main non-free # note
";
        let sources = parse_one_line(text);
        assert_eq!(sources.len(), 2);
        assert_eq!(
            mirror(&sources, "bookworm"),
            Some("https://mirror.example/debian")
        );
    }

    #[test]
    fn no_mirror_for_another_release_or_without_main() {
        let sources = parse_one_line("deb http://mirror.example/debian bookworm contrib");
        assert_eq!(mirror(&sources, "bookworm"), None);
        let sources = parse_one_line("deb http://mirror.example/debian trixie main");
        assert_eq!(mirror(&sources, "bookworm"), None);
    }
}
