//! Transport: how the way to a PostgreSQL server is protected (pure, but for the root certificates).
//!
//! Nothing goes to another host in plaintext unless the URL says so, and nothing is called verified that is not: of the
//! modes of `sslmode` those are refused that would quietly give less than they seem to.

use std::{fs, net::IpAddr, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use thiserror::Error;
use url::Url;

/// What stands for the system's root certificates, in place of a file.
const SYSTEM: &str = "system";

/// Why a URL's transport is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum TransportError {
    #[error(
        "sslmode={mode} may send everything to {host} in plaintext: say verify-full, or require, which encrypts for a \
         server that is not verified, or disable"
    )]
    MayBePlaintext { mode: String, host: String },
    #[error(
        "sslmode=verify-ca takes any server for {host} that has a certificate: say verify-full, or require, which does \
         not verify at all"
    )]
    AnyName { host: String },
    #[error(
        "sslmode={mode} does not verify the server by sslrootcert: say verify-full, or leave sslrootcert out"
    )]
    UnusedRoots { mode: String },
    #[error("sslmode={mode} is none of disable, allow, prefer, require and verify-full")]
    UnknownMode { mode: String },
    #[error("sslrootcert={}: {reason}: name a file of PEM certificates that the service may read", path.display())]
    Roots { path: PathBuf, reason: String },
    #[error("the system has no root certificates: name a file of PEM certificates by sslrootcert")]
    NoSystemRoots,
}

/// What a URL says about its transport.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    mode: Option<String>,
    roots: Option<String>,
}

/// By what a server is verified.
#[derive(Debug, PartialEq, Eq)]
enum Roots {
    /// Not at all.
    None,
    /// The system's certificates.
    System,
    /// Those of a file.
    File(PathBuf),
}

/// The options with the protection that the URL asks for, or that its host needs.
pub(super) fn protected(
    options: PgConnectOptions,
    url: &str,
) -> Result<PgConnectOptions, TransportError> {
    let local = options.get_socket().is_some() || is_this_machine(options.get_host());
    let (mode, roots) = decide(said(url), options.get_host(), local)?;
    let options = options.ssl_mode(mode);
    Ok(match roots {
        Roots::None => options,
        Roots::File(path) => {
            let unusable = |reason| TransportError::Roots {
                path: path.clone(),
                reason,
            };
            let text = fs::read(&path).map_err(|error| unusable(error.to_string()))?;
            if !String::from_utf8_lossy(&text).contains("-----BEGIN CERTIFICATE-----") {
                return Err(unusable("it holds no certificate".to_owned()));
            }
            options.ssl_root_cert_from_pem(text)
        }
        Roots::System => options.ssl_root_cert_from_pem(system_roots()?),
    })
}

fn said(url: &str) -> Said {
    let mut said = Said::default();
    let url = Url::parse(url).ok();
    for (key, value) in url.iter().flat_map(Url::query_pairs) {
        match &*key {
            "sslmode" | "ssl-mode" => said.mode = Some(value.to_ascii_lowercase()),
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" => said.roots = Some(value.into_owned()),
            _ => {}
        }
    }
    said
}

/// Whether nothing that is sent to this host leaves the machine.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    // A path is the folder of a Unix socket.
    host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

fn decide(said: Said, host: &str, local: bool) -> Result<(PgSslMode, Roots), TransportError> {
    let default = if local { "disable" } else { "verify-full" };
    let mode = said.mode.unwrap_or_else(|| default.to_owned());
    let host = host.to_owned();
    let decided = match &*mode {
        "disable" => PgSslMode::Disable,
        "allow" | "prefer" if !local => return Err(TransportError::MayBePlaintext { mode, host }),
        "allow" => PgSslMode::Allow,
        "prefer" => PgSslMode::Prefer,
        "require" => PgSslMode::Require,
        "verify-ca" => return Err(TransportError::AnyName { host }),
        "verify-full" => {
            let roots = match said.roots {
                Some(path) if path != SYSTEM => Roots::File(path.into()),
                _ => Roots::System,
            };
            return Ok((PgSslMode::VerifyFull, roots));
        }
        _ => return Err(TransportError::UnknownMode { mode }),
    };
    match said.roots {
        Some(_) => Err(TransportError::UnusedRoots { mode }),
        None => Ok((decided, Roots::None)),
    }
}

/// The system's root certificates, PEM.
fn system_roots() -> Result<Vec<u8>, TransportError> {
    let mut pem = String::new();
    for root in rustls_native_certs::load_native_certs().certs {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        pem.push_str(&STANDARD.encode(&*root));
        pem.push_str("\n-----END CERTIFICATE-----\n");
    }
    if pem.is_empty() {
        return Err(TransportError::NoSystemRoots);
    }
    Ok(pem.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const THERE: &str = "postgres://sluice@db.example.com/sluice";
    const HERE: &str = "postgres://sluice@127.0.0.1/sluice";

    /// What is decided of a URL: the mode as PostgreSQL writes it, and the roots.
    fn decided(url: &str, query: &str) -> Result<(String, Roots), TransportError> {
        let url = format!("{url}{query}");
        let options: PgConnectOptions = url.parse().expect("a URL");
        let host = options.get_host();
        let (mode, roots) = decide(said(&url), host, is_this_machine(host))?;
        Ok((format!("{mode:?}"), roots))
    }

    fn of(mode: &str, roots: Roots) -> Result<(String, Roots), TransportError> {
        Ok((mode.to_owned(), roots))
    }

    #[test]
    fn another_host_is_verified_unless_the_url_says_otherwise() {
        assert_eq!(decided(THERE, ""), of("VerifyFull", Roots::System));
        let file = Roots::File("/etc/db.pem".into());
        assert_eq!(
            decided(THERE, "?sslrootcert=/etc/db.pem"),
            of("VerifyFull", file)
        );
        let system = "?sslmode=verify-full&sslrootcert=system";
        assert_eq!(decided(THERE, system), of("VerifyFull", Roots::System));
        assert_eq!(
            decided(THERE, "?sslmode=require"),
            of("Require", Roots::None)
        );
        assert_eq!(
            decided(THERE, "?sslmode=disable"),
            of("Disable", Roots::None)
        );
    }

    #[test]
    fn what_would_quietly_protect_less_is_refused() {
        for mode in ["allow", "prefer"] {
            let refused = decided(THERE, &format!("?sslmode={mode}"));
            let error = refused.expect_err("may be plaintext").to_string();
            assert!(
                error.contains(mode) && error.contains("db.example.com"),
                "{error}"
            );
        }
        assert!(matches!(
            decided(THERE, "?sslmode=verify-ca&sslrootcert=/etc/db.pem"),
            Err(TransportError::AnyName { .. })
        ));
        for mode in ["require", "disable"] {
            let query = format!("?sslmode={mode}&sslrootcert=/etc/db.pem");
            assert_eq!(
                decided(THERE, &query),
                Err(TransportError::UnusedRoots {
                    mode: mode.to_owned()
                })
            );
        }
    }

    #[test]
    fn what_stays_on_this_machine_needs_no_protection() {
        for here in [
            HERE,
            "postgres://sluice@localhost/sluice",
            "postgres://sluice@[::1]/sluice",
        ] {
            assert_eq!(decided(here, ""), of("Disable", Roots::None), "{here}");
            assert_eq!(
                decided(here, "?sslmode=prefer"),
                of("Prefer", Roots::None),
                "{here}"
            );
        }
        assert!(is_this_machine("/var/run/postgresql"));
        assert!(!is_this_machine("localhost.example.com"));
        assert!(!is_this_machine("10.0.0.1"));
    }
}
