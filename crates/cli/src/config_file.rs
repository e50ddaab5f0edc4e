//! The argument of every command that reads a configuration file.

use std::path::PathBuf;

use clap::Args;

/// Where the configuration is.
#[derive(Args)]
pub struct FileArguments {
    /// Configuration file; sluice.example.toml explains every key.
    #[arg(long, default_value = "sluice.toml")]
    pub config: PathBuf,
}
