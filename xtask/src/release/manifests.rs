//! Kubernetes manifests as one file: the folder that an operator's overlay names as its base.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::command::{capture, command};
use crate::deployment;
use crate::repo::Repo;

/// Packs them into `folder`. `time` is that of every file, so that the same manifests give the same bytes.
pub(super) fn pack(repo: &Repo, version: &str, time: &str, folder: &Path) -> Result<PathBuf> {
    let name = format!("sluice-{version}-kubernetes");
    let file = std::path::absolute(folder.join(format!("{name}.tar.gz")))?;
    let mut pack = command(repo, "tar");
    pack.args(["--create", "--sort=name", "--format=ustar"]);
    pack.args([
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ]);
    pack.arg(format!("--mtime=@{time}"));
    // Without name and time, which the compressor would write as well.
    pack.arg("--use-compress-program=gzip --best --no-name");
    pack.arg(format!("--transform=s,^kubernetes,{name},"));
    pack.arg("--file").arg(&file);
    pack.arg("--directory").arg(deployment::folder(repo));
    capture(pack.arg("kubernetes"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_same_manifests_give_the_same_bytes_and_none_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let repo = Repo::at(root.expect("a folder of the repository").to_path_buf());
        let scratch = std::env::temp_dir().join(format!("xtask-manifests-{}", std::process::id()));
        let packed = ["one", "other"].map(|name| {
            let folder = scratch.join(name);
            fs::create_dir_all(&folder).expect("the temporary folder is writable");
            pack(&repo, "1.2.3", "1700000000", &folder).expect("packed")
        });
        let [one, other] = packed.each_ref().map(|file| fs::read(file).expect("read"));
        assert!(one == other, "two archives of the same files differ");
        let listed = capture(command(&repo, "tar").arg("-tzf").arg(&packed[0])).expect("listed");
        for entry in fs::read_dir(deployment::folder(&repo).join("kubernetes")).expect("read") {
            let name = entry.expect("read").file_name();
            let path = format!("sluice-1.2.3-kubernetes/{}", name.to_string_lossy());
            assert!(listed.lines().any(|line| line == path), "{path}: {listed}");
        }
        fs::remove_dir_all(scratch).expect("the folder is ours");
    }
}
