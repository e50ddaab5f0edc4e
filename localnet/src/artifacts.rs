//! Files that a localnet is made of, and where they are found.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Environment variable that replaces the exchange's program everywhere.
pub const CPMM_SO: &str = "CPMM_SO";

/// Environment variable that replaces the Geyser plugin everywhere. [`GEYSER_CONFIG`] goes with it.
pub const GEYSER_SO: &str = "GEYSER_SO";

/// Environment variable that names the template of the Geyser plugin's configuration; see [`crate::plugin_config`].
pub const GEYSER_CONFIG: &str = "GEYSER_CONFIG";

/// Environment variable that names the validator's binary.
pub const SLUICE_VALIDATOR: &str = "SLUICE_VALIDATOR";

/// Where the stand-in for the exchange's program is built, under the target folder.
const STAND_IN: &str = "programs/local_cpmm.so";

/// The template for our own Geyser plugin, in the repository.
const PLUGIN_CONFIG: &str = "geyser-plugin/config.json5";

/// The command that makes every artifact.
const MAKE_COMMAND: &str = "cargo xtask localnet";

/// Paths a caller gives instead of the defaults.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `solana-test-validator`.
    pub validator: Option<PathBuf>,
    /// The Geyser plugin's shared library; `GEYSER_SO` wins over it.
    pub plugin: Option<PathBuf>,
    /// The guard's program.
    pub guard: Option<PathBuf>,
    /// The exchange's program; `CPMM_SO` wins over it.
    pub cpmm: Option<PathBuf>,
    /// The `sluice` binary.
    pub sluice: Option<PathBuf>,
}

/// Everything that is run or loaded, as absolute paths of files that exist.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// `solana-test-validator`.
    pub validator: PathBuf,
    /// The Geyser plugin's shared library.
    pub plugin: PathBuf,
    /// The template of its configuration.
    pub plugin_config: PathBuf,
    /// The guard's program.
    pub guard: PathBuf,
    /// The exchange's program, loaded at the exchange's mainnet address.
    pub cpmm: PathBuf,
    /// The `sluice` binary.
    pub sluice: PathBuf,
}

/// Why a localnet cannot be put together.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// A file that should have been built is not there.
    #[error("{what} is missing: {path} does not exist; `{MAKE_COMMAND}` makes it")]
    Missing {
        /// What the file is for.
        what: &'static str,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The validator was named nowhere and is not on PATH.
    #[error(
        "solana-test-validator is missing: neither --validator nor {SLUICE_VALIDATOR} names it and \
         it is not on PATH; `{MAKE_COMMAND}` installs it"
    )]
    NoValidator,
    /// A file that the environment names is not there.
    #[error("{variable} names {path}, which is no file")]
    Named {
        /// The environment variable.
        variable: &'static str,
        /// What it names.
        path: PathBuf,
    },
    /// Another plugin is named without its configuration.
    #[error(
        "{GEYSER_SO} names another Geyser plugin, whose configuration is its own: name a template of it by \
         {GEYSER_CONFIG}, with {} and {} where the library and the address belong",
        crate::plugin_config::LIBPATH,
        crate::plugin_config::ADDRESS
    )]
    NoPluginConfig,
    /// The path cannot be made absolute.
    #[error("{path}: {source}")]
    Path {
        /// The path as given.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl Artifacts {
    /// Finds every artifact: the path given, else the environment, else the default place.
    ///
    /// # Errors
    /// [`ArtifactError`] naming the first file that is missing and the command that makes it.
    pub fn find(overrides: &Overrides) -> Result<Self, ArtifactError> {
        Self::find_with(overrides, |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        })
    }

    /// As [`Artifacts::find`], with the environment as a parameter.
    ///
    /// # Errors
    /// As [`Artifacts::find`].
    pub fn find_with(
        overrides: &Overrides,
        environment: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, ArtifactError> {
        let target = repository_root().join("target");
        let or_default = |given: &Option<PathBuf>, default: &str| {
            given.clone().unwrap_or_else(|| target.join(default))
        };
        let cpmm = environment(CPMM_SO).unwrap_or_else(|| or_default(&overrides.cpmm, STAND_IN));
        let (plugin, plugin_config) = plugin(overrides, &environment)?;
        let validator = overrides
            .validator
            .clone()
            .or_else(|| environment(SLUICE_VALIDATOR))
            .or_else(|| on_path("solana-test-validator", environment("PATH")))
            .ok_or(ArtifactError::NoValidator)?;
        Ok(Self {
            validator: existing("solana-test-validator", validator)?,
            plugin,
            plugin_config,
            guard: existing(
                "the swap guard's program",
                or_default(&overrides.guard, "programs/swap_guard.so"),
            )?,
            cpmm: existing("the exchange's program", cpmm)?,
            sluice: existing(
                "the sluice binary",
                overrides
                    .sluice
                    .clone()
                    .unwrap_or_else(|| beside_this_executable("sluice")),
            )?,
        })
    }
}

/// The Geyser plugin and the template of its configuration.
fn plugin(
    overrides: &Overrides,
    environment: impl Fn(&str) -> Option<PathBuf>,
) -> Result<(PathBuf, PathBuf), ArtifactError> {
    let replacement = environment(GEYSER_SO);
    let template = match environment(GEYSER_CONFIG) {
        Some(template) => named(GEYSER_CONFIG, template)?,
        None if replacement.is_some() => return Err(ArtifactError::NoPluginConfig),
        None => existing(
            "the Geyser plugin's configuration",
            repository_root().join(PLUGIN_CONFIG),
        )?,
    };
    let library = match replacement {
        Some(library) => named(GEYSER_SO, library)?,
        None => {
            let built =
                || repository_root().join("target/geyser-plugin/libsluice_geyser_plugin.so");
            existing(
                "the Geyser plugin",
                overrides.plugin.clone().unwrap_or_else(built),
            )?
        }
    };
    Ok((library, template))
}

impl Artifacts {
    /// Whether the exchange's program is the stand-in, wherever it was copied to: it takes fewer compute units than the
    /// real one, so the service must know.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn exchange_is_stand_in(&self) -> io::Result<bool> {
        let stand_in = repository_root().join("target").join(STAND_IN);
        match fs::read(stand_in) {
            Ok(stand_in) => Ok(stand_in == fs::read(&self.cpmm)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What identifies a binary in a transcript.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    /// Where it was loaded from.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

impl Fingerprint {
    /// Reads and hashes a file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            size: bytes.len() as u64,
            sha256: Sha256::digest(&bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} bytes, sha256 {})",
            self.path.display(),
            self.size,
            self.sha256
        )
    }
}

/// The repository this crate was compiled in: its artifacts live under `target/` there.
#[must_use]
pub fn repository_root() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.parent().unwrap_or(crate_dir).to_owned()
}

/// Where a binary of this workspace is: beside the running one. Test executables live one folder deeper
/// (`deps/`) than the binaries built with them.
#[must_use]
pub fn beside_this_executable(name: &str) -> PathBuf {
    let folder = env::current_exe().ok().and_then(|exe| {
        let folder = exe.parent()?;
        if folder.ends_with("deps") {
            folder.parent().map(Path::to_owned)
        } else {
            Some(folder.to_owned())
        }
    });
    folder
        .unwrap_or_else(|| repository_root().join("target/debug"))
        .join(name)
}

fn on_path(name: &str, path: Option<PathBuf>) -> Option<PathBuf> {
    env::split_paths(&path?)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Children run in folders of their own, so every path is made absolute here.
fn absolute(path: PathBuf) -> Result<PathBuf, ArtifactError> {
    std::path::absolute(&path).map_err(|source| ArtifactError::Path { path, source })
}

/// A file that the environment names, and that no command of ours makes.
fn named(variable: &'static str, path: PathBuf) -> Result<PathBuf, ArtifactError> {
    let path = absolute(path)?;
    if path.is_file() {
        Ok(path)
    } else {
        Err(ArtifactError::Named { variable, path })
    }
}

fn existing(what: &'static str, path: PathBuf) -> Result<PathBuf, ArtifactError> {
    let absolute = absolute(path)?;
    if absolute.is_file() {
        Ok(absolute)
    } else {
        Err(ArtifactError::Missing {
            what,
            path: absolute,
        })
    }
}

#[cfg(test)]
mod tests;
