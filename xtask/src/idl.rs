//! `idl`: the interface description of swap-guard, from what its `idl-build` tests print.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::generated::Generated;
use crate::repo::Repo;
use crate::step::Step;
use crate::workspaces::Workspace;

const FILE: Generated = Generated {
    path: "idls/swap_guard.json",
    source: "the program",
    command: "cargo xtask idl",
};

/// Writes `idls/swap_guard.json` anew.
pub fn write(repo: &Repo) -> Result<()> {
    FILE.write(repo, &generate(repo)?)
}

/// Fails when `idls/swap_guard.json` is not what the program says of itself.
pub fn check(repo: &Repo) -> Result<()> {
    FILE.check(repo, &generate(repo)?)
}

fn generate(repo: &Repo) -> Result<String> {
    let step = Step::begin(
        repo,
        "idl",
        "Generating the IDL of swap-guard",
        "clients read from it what the program takes and returns",
        "30 s from nothing",
    )?;
    let words = ["test", "--locked", "--package", "swap-guard"];
    let mut print = Workspace::programs(repo).cargo(repo, &words);
    print.args(["--features", "idl-build", "__anchor_private_print_idl"]);
    let lines = step.read(print.args(["--", "--show-output", "--quiet", "--test-threads=1"]))?;
    let idl = assemble(&sections(&lines)?)?;
    step.done();
    let text = serde_json::to_string_pretty(&idl).context("JSON values can always be written")?;
    Ok(text + "\n")
}

/// The JSON values between `--- IDL begin X ---` and `--- IDL end X ---`, each with its X.
fn sections(lines: &[String]) -> Result<Vec<(String, Value)>> {
    let mut sections = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in lines {
        if let Some(name) = marker(line, "begin") {
            open = Some((name.to_owned(), String::new()));
        } else if let Some(name) = marker(line, "end") {
            let (opened, text) = open
                .take()
                .context("an IDL section ends before it begins")?;
            if opened != name {
                bail!("IDL section {opened} ends as {name}");
            }
            sections.push((opened, parse(name, &text)?));
        } else if let Some((_, text)) = &mut open {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(sections)
}

fn marker<'a>(line: &'a str, edge: &str) -> Option<&'a str> {
    let rest = line.strip_prefix("--- IDL ")?.strip_prefix(edge)?;
    Some(rest.strip_suffix("---")?.trim())
}

/// The address is printed as a bare key, everything else as JSON.
fn parse(name: &str, text: &str) -> Result<Value> {
    if name == "address" {
        return Ok(Value::String(text.trim().trim_matches('"').to_owned()));
    }
    serde_json::from_str(text).with_context(|| format!("IDL section {name} is no JSON"))
}

/// Puts the sections into the `program` object. Items keep a stable order: by name, whatever order the tests ran in.
fn assemble(sections: &[(String, Value)]) -> Result<Value> {
    let named = |wanted| named(sections, wanted);
    let program = named("program")
        .next()
        .context("no IDL section `program`")?;
    let mut idl = program.clone();
    if let Some(address) = named("address").next() {
        idl["address"] = address.clone();
    }
    let errors = named("errors").filter_map(|errors| errors.as_array());
    extend(&mut idl, "errors", errors.flatten().cloned());
    extend(&mut idl, "constants", named("const").cloned());
    extend(
        &mut idl,
        "events",
        named("event").map(|value| value["event"].clone()),
    );
    let types = named("event").filter_map(|value| value["types"].as_array());
    extend(&mut idl, "types", types.flatten().cloned());
    Ok(idl)
}

fn named<'a>(sections: &'a [(String, Value)], wanted: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_wanted = move |(name, _): &&(String, Value)| name == wanted;
    sections.iter().filter(is_wanted).map(|(_, value)| value)
}

/// Adds items to an array of the IDL, sorted by code or name and without repetition. An array that stays empty is not added.
fn extend(idl: &mut Value, key: &str, items: impl Iterator<Item = Value>) {
    let mut all: Vec<Value> = idl[key].as_array().cloned().unwrap_or_default();
    all.extend(items);
    if all.is_empty() {
        return;
    }
    let rank = |item: &Value| {
        (
            item["code"].as_u64(),
            item["name"].as_str().map(str::to_owned),
        )
    };
    all.sort_by_key(rank);
    all.dedup();
    idl[key] = Value::Array(all);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    const PRINTED: &str = r#"
running 4 tests
--- IDL begin event ---
{"event": {"name": "B"}, "types": [{"name": "T"}]}
--- IDL end event ---
--- IDL begin program ---
{
  "address": "", "instructions": [], "types": [{"name": "T"}]
}
--- IDL end program ---
--- IDL begin event ---
{"event": {"name": "A"}, "types": []}
--- IDL end event ---
--- IDL begin address ---
SGds
--- IDL end address ---
--- IDL begin errors ---
[{"code": 6001, "name": "A"}, {"code": 6000, "name": "B"}]
--- IDL end errors ---
test result: ok.
"#;

    #[test]
    fn puts_the_printed_sections_together() {
        let sections = sections(&lines(PRINTED)).expect("well formed");
        let idl = assemble(&sections).expect("has a program");
        let expected = json!({
            "address": "SGds",
            "instructions": [],
            "errors": [{"code": 6000, "name": "B"}, {"code": 6001, "name": "A"}],
            "events": [{"name": "A"}, {"name": "B"}],
            "types": [{"name": "T"}],
        });
        assert_eq!(idl, expected);
    }

    #[test]
    fn refuses_crossed_or_unopened_sections_and_a_missing_program() {
        assert!(sections(&lines("--- IDL end x ---")).is_err());
        let crossed = "--- IDL begin x ---\n1\n--- IDL end y ---";
        assert!(sections(&lines(crossed)).is_err());
        let no_json = "--- IDL begin x ---\noops\n--- IDL end x ---";
        assert!(sections(&lines(no_json)).is_err());
        assert!(assemble(&[]).is_err());
    }
}
