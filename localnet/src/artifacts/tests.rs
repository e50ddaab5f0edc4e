//! Artifacts of the localnet: what is found, and what a missing one is answered with.

use super::*;

fn all_present(folder: &Path) -> Overrides {
    let file = |name: &str| {
        let path = folder.join(name);
        fs::write(&path, name).expect("temporary folder is writable");
        Some(path)
    };
    Overrides {
        validator: file("validator"),
        plugin: file("plugin.so"),
        guard: file("guard.so"),
        cpmm: file("cpmm.so"),
        sluice: file("sluice"),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder can be made")
}

#[test]
fn a_missing_file_is_named_together_with_the_command_that_makes_it() {
    let folder = folder();
    let mut overrides = all_present(folder.path());
    overrides.guard = Some(folder.path().join("nowhere.so"));
    let message = Artifacts::find_with(&overrides, |_| None)
        .expect_err("guard is missing")
        .to_string();
    assert!(message.contains("swap guard"), "{message}");
    assert!(message.contains("nowhere.so"), "{message}");
    assert!(message.contains("cargo xtask localnet"), "{message}");
}

#[test]
fn cpmm_so_wins_over_the_flag() {
    let folder = folder();
    let overrides = all_present(folder.path());
    let other = folder.path().join("other.so");
    fs::write(&other, "other").expect("temporary folder is writable");
    let found = Artifacts::find_with(&overrides, |name| (name == CPMM_SO).then(|| other.clone()))
        .expect("all files exist");
    assert_eq!(found.cpmm, other);
}

#[test]
fn geyser_so_and_its_template_win_over_the_flag() {
    let folder = folder();
    let overrides = all_present(folder.path());
    let other = folder.path().join("other.so");
    let template = folder.path().join("other.json");
    for path in [&other, &template] {
        fs::write(path, "other").expect("temporary folder is writable");
    }
    let found = Artifacts::find_with(&overrides, |name| match name {
        GEYSER_SO => Some(other.clone()),
        GEYSER_CONFIG => Some(template.clone()),
        _ => None,
    });
    let found = found.expect("all files exist");
    assert_eq!((found.plugin, found.plugin_config), (other, template));
}

#[test]
fn our_plugin_can_be_given_another_configuration() {
    let folder = folder();
    let overrides = all_present(folder.path());
    let template = folder.path().join("other.json5");
    fs::write(&template, "other").expect("temporary folder is writable");
    let found = Artifacts::find_with(&overrides, |name| {
        (name == GEYSER_CONFIG).then(|| template.clone())
    });
    let found = found.expect("all files exist");
    assert_eq!(Some(found.plugin), overrides.plugin);
    assert_eq!(found.plugin_config, template);
}

#[test]
fn another_plugin_needs_its_own_configuration_and_both_must_be_there() {
    let folder = folder();
    let overrides = all_present(folder.path());
    let plugin = overrides.plugin.clone();
    let message = |plugin: Option<PathBuf>, template: Option<PathBuf>| {
        Artifacts::find_with(&overrides, |name| match name {
            GEYSER_SO => plugin.clone(),
            GEYSER_CONFIG => template.clone(),
            _ => None,
        })
        .expect_err("something is missing")
        .to_string()
    };
    let text = message(plugin.clone(), None);
    assert!(
        text.contains(GEYSER_CONFIG) && text.contains("{{address}}"),
        "{text}"
    );
    let nowhere = Some(folder.path().join("nowhere"));
    let text = message(plugin.clone(), nowhere.clone());
    assert!(
        text.starts_with("GEYSER_CONFIG names") && text.contains("nowhere"),
        "{text}"
    );
    let text = message(nowhere, plugin);
    assert!(
        text.starts_with("GEYSER_SO names") && text.contains("nowhere"),
        "{text}"
    );
}

#[test]
fn no_validator_anywhere_is_said_so() {
    let folder = folder();
    let overrides = Overrides {
        validator: None,
        ..all_present(folder.path())
    };
    let error = Artifacts::find_with(&overrides, |_| None).expect_err("no validator");
    assert!(matches!(error, ArtifactError::NoValidator));
}
