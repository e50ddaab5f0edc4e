//! Container image of the program: nothing in it but the program, the libraries that it loads and root certificates.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{files::install, scratch, time, trial};
use crate::cache::remove;
use crate::command::{capture, command};
use crate::output::say;
use crate::repo::Repo;
use crate::step::Step;

/// User and group without a name on any machine that runs it.
const USER: u32 = 65532;

/// The most that the files of the image may take together, unpacked as a machine holds them, bytes. What is downloaded is less.
const MOST_BYTES: u64 = 60_000_000;

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Where the image's command is set; the container file says the same.
const SETTINGS: [&str; 3] = [
    "SLUICE_API__LISTEN=0.0.0.0:8787",
    "SLUICE_INDEXER__LISTEN=0.0.0.0:8788",
    "SLUICE_STORE__PATH=/data/sluice.db",
];

/// Builds the image, tries it, and writes it as a file that container engines load.
pub fn build(repo: &Repo, program: &Path, version: &str, artifacts: &Path) -> Result<()> {
    let step = Step::begin(
        repo,
        "image",
        "Building the container image",
        "for engines of containers, without one",
        "20 s",
    )?;
    let root = scratch(repo).join("image-root");
    lay_out(repo, program, &root)?;
    let size = bytes_below(&root)?;
    ensure!(
        size <= MOST_BYTES,
        "the image's files take {size} bytes, more than {MOST_BYTES}"
    );
    let layout = scratch(repo).join("image");
    remove(&layout)?;
    let image = format!("{}:{version}", layout.display());
    let umoci = |words: &[&str]| {
        let mut umoci = command(repo, "umoci");
        umoci.args(words);
        umoci
    };
    step.run(umoci(&["init", "--layout"]).arg(&layout))?;
    step.run(&mut umoci(&["new", "--image", &image]))?;
    let mut insert = umoci(&["insert", "--image", &image]);
    step.run(insert.arg(&root).arg("/"))?;
    configure(repo, &step, &image)?;
    let bundle = scratch(repo).join("image-bundle");
    remove(&bundle)?;
    step.run(umoci(&["unpack", "--image", &image]).arg(&bundle))?;
    let file = artifacts.join(format!("sluice-{version}-image.tar"));
    let mut copy = command(repo, "skopeo");
    copy.args(["--insecure-policy", "copy", &format!("oci:{image}")]);
    step.run(copy.arg(format!("oci-archive:{}:sluice:{version}", file.display())))?;
    step.done();
    say!("==> The image's files take {size} bytes");
    trial::image(repo, &bundle)
}

/// What the image is started with.
fn configure(repo: &Repo, step: &Step, image: &str) -> Result<()> {
    let user = format!("{USER}:{USER}");
    let created = capture(command(repo, "date").args([
        "--utc",
        "--date",
        &format!("@{}", time(repo)?),
        "+%Y-%m-%dT%H:%M:%SZ",
    ]))?;
    let mut configure = command(repo, "umoci");
    configure.args(["config", "--image", image, "--config.user", &user]);
    configure.args(["--config.workingdir", "/data", "--config.volume", "/data"]);
    configure.args([
        "--config.exposedports",
        "8787/tcp",
        "--config.exposedports",
        "8788/tcp",
    ]);
    configure.args(["--config.entrypoint", "/usr/bin/sluice"]);
    for word in ["serve", "--config", "/dev/null"] {
        configure.args(["--config.cmd", word]);
    }
    for setting in SETTINGS {
        configure.args(["--config.env", setting]);
    }
    configure.args(["--created", created.trim()]);
    step.run(&mut configure)
}

/// The image's whole file system.
fn lay_out(repo: &Repo, program: &Path, root: &Path) -> Result<()> {
    remove(root)?;
    install(program, &root.join("usr/bin/sluice"), 0o755)?;
    for library in libraries(repo, program)? {
        install(&library, &root.join(library.strip_prefix("/")?), 0o755)?;
    }
    install(
        &Path::new("/").join(CERTIFICATES),
        &root.join(CERTIFICATES),
        0o644,
    )?;
    let names = [
        (
            "etc/passwd",
            format!("sluice:x:{USER}:{USER}:Sluice:/data:/sbin/nologin\n"),
        ),
        ("etc/group", format!("sluice:x:{USER}:\n")),
    ];
    for (name, text) in names {
        super::write(&root.join(name), &text)?;
    }
    for folder in ["data", "dev", "proc", "sys", "tmp", "run"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let data = root.join("data");
    chown(&data, Some(USER), Some(USER))
        .context("cannot give /data of the image to its user: a release is made by root")?;
    fs::set_permissions(&data, Permissions::from_mode(0o700))?;
    Ok(())
}

/// What the files in a folder and below take together, bytes.
fn bytes_below(folder: &Path) -> Result<u64> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        // Of the entry itself: what a link points to is counted where it lies.
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            bytes_below(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}

/// The libraries that the program loads, the loader among them.
fn libraries(repo: &Repo, program: &Path) -> Result<Vec<PathBuf>> {
    let said = capture(command(repo, "ldd").arg(program))?;
    let found: Vec<PathBuf> = loaded(&said).map(PathBuf::from).collect();
    ensure!(
        !found.is_empty(),
        "ldd names no library of the program:\n{said}"
    );
    Ok(found)
}

/// The paths in what `ldd` says.
fn loaded(said: &str) -> impl Iterator<Item = &str> {
    said.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| word.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_with_a_path() {
        let said = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld.so.2 (0x3)\n";
        let found: Vec<&str> = loaded(said).collect();
        assert_eq!(found, ["/lib/libc.so.6", "/lib64/ld.so.2"]);
    }

    #[test]
    fn an_image_is_as_large_as_its_files_in_every_folder() {
        let root = std::env::temp_dir().join(format!("xtask-image-{}", std::process::id()));
        fs::create_dir_all(root.join("usr/bin")).expect("the temporary folder is writable");
        fs::write(root.join("usr/bin/sluice"), [0; 1000]).expect("written");
        fs::write(root.join("passwd"), [0; 24]).expect("written");
        std::os::unix::fs::symlink("usr", root.join("link")).expect("linked");
        let bytes = bytes_below(&root).expect("readable");
        fs::remove_dir_all(&root).expect("the folder is ours");
        assert_eq!(bytes, 1024 + 3);
    }

    #[test]
    fn the_container_file_says_the_same() {
        let file = include_str!("../../../deploy/container/Dockerfile");
        for setting in SETTINGS {
            assert!(file.contains(setting), "{setting}");
        }
        assert!(file.contains(&format!("USER {USER}:{USER}")));
        assert!(file.contains("CMD [\"serve\", \"--config\", \"/dev/null\"]"));
    }
}
