//! Files of `deploy/` that are published one by one: alerts, dashboard, and what runs or builds the image.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::write;
use crate::deployment;
use crate::repo::Repo;

/// Files below `deploy/`, and what stands behind the version in the name under which each is published.
const COPIED: [(&str, &str); 3] = [
    ("prometheus/alerts.yaml", "-alerts.yaml"),
    ("grafana/sluice.json", "-dashboard.json"),
    ("container/Dockerfile", ".Dockerfile"),
];

/// Below `deploy/`, and so that there is no source of an image beside it where it is published.
const COMPOSE: &str = "container/compose.yaml";

/// What the compose file says of its image in the repository: to build it from the sources around.
const BUILT: &str =
    "  image: sluice\n  build:\n    context: ../..\n    dockerfile: deploy/container/Dockerfile\n";

/// How the compose file is called in the repository, in its own words.
const CALLED: &str = "--file deploy/container/compose.yaml";

/// Copies them into `folder`. Returns where the compose file is.
pub(super) fn copy(repo: &Repo, version: &str, folder: &Path) -> Result<PathBuf> {
    let deploy = deployment::folder(repo);
    for (from, end) in COPIED {
        let from = deploy.join(from);
        fs::copy(&from, folder.join(format!("sluice-{version}{end}")))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let text = fs::read_to_string(deploy.join(COMPOSE))
        .with_context(|| format!("cannot read deploy/{COMPOSE}"))?;
    let name = format!("sluice-{version}-compose.yaml");
    let file = folder.join(&name);
    write(&file, &composed(&text, version, &name)?)?;
    Ok(file)
}

/// The compose file with the released image, as an engine knows it that has loaded the image's file (pure).
fn composed(text: &str, version: &str, name: &str) -> Result<String> {
    for expected in [BUILT, CALLED] {
        ensure!(
            text.matches(expected).count() == 1,
            "deploy/{COMPOSE} does not say once, so that the released image cannot be named in its place:\n{expected}"
        );
    }
    let loaded = format!("  image: sluice:{version}\n");
    let load = format!("docker load --input sluice-{version}-image.tar\n#   docker compose");
    let text = text.replace(BUILT, &loaded);
    let text = text.replace("docker compose --file", &format!("{load} --file"));
    Ok(text.replace(CALLED, &format!("--file {name}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::release::{debian, sums};

    fn repo() -> Repo {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        Repo::at(root.expect("a folder of the repository").to_path_buf())
    }

    /// The files below a folder, by their paths from `root`.
    fn files(root: &Path, folder: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(folder).expect("read");
        let paths = entries.map(|entry| entry.expect("read").path());
        paths
            .flat_map(|path| {
                if path.is_dir() {
                    return files(root, &path);
                }
                let name = path.strip_prefix(root).expect("below it");
                BTreeSet::from([name.to_string_lossy().into_owned()])
            })
            .collect()
    }

    #[test]
    fn every_file_that_an_operator_needs_is_published() {
        let repo = repo();
        let root = deployment::folder(&repo);
        let mut left = files(&root, &root);
        for (published, _) in COPIED {
            assert!(left.remove(published), "{published}");
        }
        assert!(left.remove(COMPOSE));
        for packed in debian::sources() {
            left.remove(&packed);
        }
        // Packed as a folder; what judges the others; what only a build in the repository reads.
        for elsewhere in ["kubernetes/", "checks/"] {
            left.retain(|file| !file.starts_with(elsewhere));
        }
        for read_here in [
            "prometheus/alerts.test.yaml",
            "container/Dockerfile.dockerignore",
        ] {
            assert!(left.remove(read_here), "{read_here}");
        }
        assert!(left.is_empty(), "nobody gets {left:?}");
    }

    #[test]
    fn they_are_copied_with_their_checksums_and_the_compose_file_names_the_released_image() {
        let folder = std::env::temp_dir().join(format!("xtask-deploy-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is writable");
        let compose = copy(&repo(), "1.2.3", &folder).expect("copied");
        let composed = fs::read_to_string(compose).expect("read");
        sums(&repo(), &folder).expect("summed");
        let sums = fs::read_to_string(folder.join("SHA256SUMS")).expect("read");
        fs::remove_dir_all(&folder).expect("the folder is ours");
        let listed: Vec<&str> = sums
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        let all = [
            "sluice-1.2.3-alerts.yaml",
            "sluice-1.2.3-compose.yaml",
            "sluice-1.2.3-dashboard.json",
            "sluice-1.2.3.Dockerfile",
        ];
        assert_eq!(listed, all);
        assert!(composed.contains("  image: sluice:1.2.3\n"), "{composed}");
        assert!(
            composed.contains("--file sluice-1.2.3-compose.yaml up"),
            "{composed}"
        );
        for of_the_repository in ["build:", "deploy/", "../"] {
            assert!(!composed.contains(of_the_repository), "{composed}");
        }
    }

    #[test]
    fn a_compose_file_that_builds_otherwise_is_refused() {
        let error = composed("image: other\n", "1.2.3", "compose.yaml");
        let error = error.expect_err("nothing to replace").to_string();
        assert!(error.contains("does not say once"), "{error}");
    }
}
