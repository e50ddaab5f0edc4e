//! Bill of materials of the program, in the format CycloneDX (pure).

use serde_json::{Value, json};

use super::parts::{Part, Parts};

/// The version of the format that is written.
const FORMAT: &str = "1.5";

/// The bill's text. It names no time and no serial number, so that the same parts give the same bytes.
pub fn json(parts: &Parts) -> String {
    let is_program = |part: &&Part| part.name == "sluice";
    let program = parts.all.iter().find(is_program);
    let components: Vec<Value> = parts
        .all
        .iter()
        .filter(|part| !is_program(part))
        .map(|part| component(part, "library"))
        .collect();
    let dependencies: Vec<Value> = parts
        .all
        .iter()
        .map(|part| {
            let mut uses = part.uses.clone();
            uses.sort();
            uses.dedup();
            json!({"ref": part.purl(), "dependsOn": uses})
        })
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": FORMAT,
        "version": 1,
        "metadata": {"component": program.map(|part| component(part, "application"))},
        "components": components,
        "dependencies": dependencies,
    });
    format!("{bill:#}\n")
}

fn component(part: &Part, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": part.purl(),
        "name": part.name,
        "version": part.version,
        "purl": part.purl(),
    });
    if let Some(licence) = &part.licence {
        component["licenses"] = json!([{"expression": expression(licence)}]);
    }
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// The expression as SPDX writes it today: manifests of before have a slash for a choice.
fn expression(licence: &str) -> String {
    let choices: Vec<&str> = licence.split('/').map(str::trim).collect();
    choices.join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_as_today() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
    }

    #[test]
    fn the_program_is_what_the_bill_is_of_and_not_among_its_parts() {
        let part = |name: &str, uses: &[&str]| Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some("MIT".to_owned()),
            checksum: None,
            folder: "/".into(),
            uses: uses
                .iter()
                .map(|name| format!("pkg:cargo/{name}@1.0.0"))
                .collect(),
        };
        let all = vec![part("below", &[]), part("sluice", &["below", "below"])];
        let version = "1.0.0".to_owned();
        let bill: Value = serde_json::from_str(&json(&Parts { version, all })).expect("JSON");
        assert_eq!(bill["metadata"]["component"]["name"], "sluice");
        assert_eq!(bill["components"].as_array().expect("a list").len(), 1);
        assert_eq!(
            bill["dependencies"][1]["dependsOn"],
            json!(["pkg:cargo/below@1.0.0"])
        );
    }
}
