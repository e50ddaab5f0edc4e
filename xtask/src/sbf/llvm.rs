//! LLVM 23 from Debian sid in a folder of its own, with its C library; nothing of it is installed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::private_apt;
use crate::repo::Repo;
use crate::step::Step;

/// Where the libraries lie inside the unpacked packages.
const LIBRARIES: &str = "root/usr/lib/x86_64-linux-gnu";

/// LLVM and everything its library loads, the C library included: Debian 12's own is too old for it.
const PACKAGES: [&str; 14] = [
    "libllvm23",
    "libc6",
    "libedit2",
    "libffi8",
    "libgcc-s1",
    "libstdc++6",
    "libxml2-16",
    "libz3-4",
    "libzstd1",
    "zlib1g",
    "libbsd0",
    "libtinfo6",
    "libmd0",
    "liblzma5",
];

/// The unpacked LLVM.
#[derive(Debug)]
pub struct Llvm {
    folder: PathBuf,
}

impl Llvm {
    /// Downloads and unpacks LLVM unless that has been done.
    ///
    /// LLVM 22 and older cannot do it: no aggregate returns, no more than five arguments, no 128-bit library calls.
    pub fn set_up(repo: &Repo, cache: &Cache) -> Result<Self> {
        let recipe = format!("LLVM 23 of Debian sid, recipe 1: {}\n", PACKAGES.join(" "));
        let folder = cache.tool("llvm-23", &recipe, |folder| {
            let step = Step::begin(
                repo,
                "llvm",
                "Unpacking LLVM 23 from Debian sid into the cache",
                "the linker needs an LLVM newer than Debian 12's to write programs for the chain",
                "40 s, once; 80 MB of download",
            )?;
            step.explain();
            unpack(repo, &step, folder)?;
            step.done();
            Ok(())
        })?;
        Ok(Self { folder })
    }

    /// A folder with nothing but LLVM's library: the linker loads the first file of that name it meets.
    pub fn only_library(&self) -> PathBuf {
        self.folder.join("llvm")
    }

    /// All unpacked libraries, for the loader that stands among them.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join(LIBRARIES)
    }
}

fn unpack(repo: &Repo, step: &Step, folder: &Path) -> Result<()> {
    private_apt::unpack(repo, step, "sid", &PACKAGES, folder, &folder.join("root"))?;
    link_library(folder)
}

/// Puts a link to LLVM's library, by relative path, into a folder of its own.
fn link_library(folder: &Path) -> Result<()> {
    let libraries = folder.join(LIBRARIES);
    let named: Vec<String> = fs::read_dir(&libraries)
        .with_context(|| format!("the packages hold no {}", libraries.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("libLLVM.so.23"))
        .collect();
    let Some(library) = named.iter().max_by_key(|name| name.len()) else {
        bail!("libllvm23 holds no libLLVM.so.23 any more; its layout has changed");
    };
    let link = folder.join("llvm");
    fs::create_dir(&link)?;
    symlink(
        Path::new("..").join(LIBRARIES).join(library),
        link.join(library),
    )
    .context("cannot link LLVM's library")
}
