//! Ports of a localnet, chosen so that any number of them run side by side.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::{linux::net::SocketAddrExt, unix::net},
};

use thiserror::Error;

/// First port of the search. Below the range from which systems draw ports for outgoing connections
/// (32768 upwards on Linux), so that no passing connection takes a port between choice and use.
const FIRST: u16 = 20_000;

/// One past the last port of the search.
const END: u16 = 32_000;

/// Ports per localnet: nine named ones and the validator's dynamic range, which must be wider than 25.
const BLOCK: u16 = 64;

/// Offset of the validator's dynamic range in a block.
const DYNAMIC_OFFSET: u16 = 9;

/// Name of the claim on the usual ports, in the abstract namespace of sockets: each network namespace has its own, as it has ports.
const USUAL_CLAIM: &str = "sluice-localnet";

/// The claim on the usual ports of a localnet, as long as this value lives: of several that start at the same moment, when all of these
/// ports are still free, one has it.
#[derive(Debug)]
pub struct UsualPorts {
    _claim: net::UnixListener,
}

impl UsualPorts {
    /// `None` while another localnet has it.
    #[must_use]
    pub fn claim() -> Option<Self> {
        Self::claim_as(USUAL_CLAIM)
    }

    fn claim_as(name: &str) -> Option<Self> {
        let name = net::SocketAddr::from_abstract_name(name).ok()?;
        let _claim = net::UnixListener::bind_addr(&name).ok()?;
        Some(Self { _claim })
    }

    /// One of them, unless something else listens there.
    #[must_use]
    pub fn free(&self, port: u16) -> Option<u16> {
        is_free(port).then_some(port)
    }
}

/// Ports a caller insists on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// JSON-RPC; the next one up serves its websocket.
    pub rpc: Option<u16>,
    /// Faucet.
    pub faucet: Option<u16>,
    /// Yellowstone gRPC of the plugin.
    pub grpc: Option<u16>,
    /// Sluice's REST API.
    pub api: Option<u16>,
    /// Health endpoints of the indexer.
    pub indexer: Option<u16>,
}

/// The ports of one localnet, reserved as long as this value lives.
#[derive(Debug)]
pub struct Ports {
    /// JSON-RPC; `rpc + 1` serves its websocket.
    pub rpc: u16,
    /// Faucet.
    pub faucet: u16,
    /// Gossip.
    pub gossip: u16,
    /// First port of the validator's dynamic range.
    pub dynamic_start: u16,
    /// One past the last port of the validator's dynamic range.
    pub dynamic_end: u16,
    /// Yellowstone gRPC of the plugin.
    pub grpc: u16,
    /// Sluice's REST API.
    pub api: u16,
    /// Health endpoints of the indexer.
    pub indexer: u16,
    /// For a webhook receiver of the localnet's own.
    pub receiver: u16,
    /// Held so that another localnet that looks for a block at this moment passes this one by.
    _claim: TcpListener,
}

/// Why no ports could be had.
#[derive(Debug, Error)]
pub enum PortError {
    /// A port that was asked for is in use.
    #[error("port {port} for {what} is in use; stop what listens there or choose another port")]
    Taken {
        /// What the port was for.
        what: &'static str,
        /// The port.
        port: u16,
    },
    /// Every block is in use.
    #[error("no {BLOCK} free ports in a row between {FIRST} and {END}")]
    Exhausted,
}

impl Ports {
    /// Chooses ports: those asked for, the rest from a free block. `start` spreads simultaneous
    /// searches; the process id serves.
    ///
    /// # Errors
    /// [`PortError`] when a port asked for is taken, or no block is free.
    pub fn choose(wanted: &Wanted, start: u32) -> Result<Self, PortError> {
        let (claim, base) = claim_block(start)?;
        let pick = |what, wanted: Option<u16>, offset: u16| match wanted {
            Some(port) if !is_free(port) => Err(PortError::Taken { what, port }),
            Some(port) => Ok(port),
            None => Ok(base + offset),
        };
        let rpc = pick("JSON-RPC", wanted.rpc, 1)?;
        if !is_free(rpc + 1) {
            return Err(PortError::Taken {
                what: "the JSON-RPC websocket",
                port: rpc + 1,
            });
        }
        Ok(Self {
            rpc,
            faucet: pick("the faucet", wanted.faucet, 3)?,
            gossip: base + 4,
            grpc: pick("Yellowstone gRPC", wanted.grpc, 5)?,
            api: pick("the REST API", wanted.api, 6)?,
            indexer: pick("the indexer's health", wanted.indexer, 7)?,
            receiver: base + 8,
            dynamic_start: base + DYNAMIC_OFFSET,
            dynamic_end: base + BLOCK,
            _claim: claim,
        })
    }

    /// Every port on which something of this localnet listens by name.
    #[must_use]
    pub fn listening(&self) -> [(&'static str, u16); 7] {
        [
            ("JSON-RPC", self.rpc),
            ("websocket", self.rpc + 1),
            ("faucet", self.faucet),
            ("gossip", self.gossip),
            ("gRPC", self.grpc),
            ("API", self.api),
            ("indexer", self.indexer),
        ]
    }
}

/// Whether nothing listens on a port, on any address, neither TCP nor UDP.
#[must_use]
pub fn is_free(port: u16) -> bool {
    let any = (Ipv4Addr::UNSPECIFIED, port);
    TcpListener::bind(any).is_ok() && UdpSocket::bind(any).is_ok()
}

/// The first of a block's ports is bound and kept: taking it is atomic, so of two searches at the
/// same moment only one gets the block.
fn claim_block(start: u32) -> Result<(TcpListener, u16), PortError> {
    let blocks = (END - FIRST) / BLOCK;
    let first = u16::try_from(start % u32::from(blocks)).map_err(|_| PortError::Exhausted)?;
    (0..blocks)
        .map(|step| FIRST + (first + step) % blocks * BLOCK)
        .find_map(|base| claim(base).ok().map(|claim| (claim, base)))
        .ok_or(PortError::Exhausted)
}

fn claim(base: u16) -> io::Result<TcpListener> {
    let claim = TcpListener::bind((Ipv4Addr::LOCALHOST, base))?;
    if (base + 1..base + BLOCK).all(is_free) {
        Ok(claim)
    } else {
        Err(io::ErrorKind::AddrInUse.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_localnets_share_no_port() {
        let one = Ports::choose(&Wanted::default(), 7).expect("ports are free");
        let two = Ports::choose(&Wanted::default(), 7).expect("ports are free");
        assert!(one.dynamic_end <= two.rpc || two.dynamic_end <= one.rpc);
        let (one, two) = (one.listening(), two.listening());
        assert!(one.iter().all(|(_, a)| two.iter().all(|(_, b)| a != b)));
    }

    #[test]
    fn one_localnet_at_a_time_has_the_usual_ports() {
        let name = format!("{USUAL_CLAIM}-{}", std::process::id());
        let first = UsualPorts::claim_as(&name).expect("nobody has them");
        assert!(UsualPorts::claim_as(&name).is_none());
        let holder = TcpListener::bind("127.0.0.1:0").expect("a free port exists");
        let port = holder.local_addr().expect("bound").port();
        assert_eq!(first.free(port), None);
        drop(first);
        assert!(UsualPorts::claim_as(&name).is_some());
    }

    #[test]
    fn a_taken_port_is_named() {
        let holder = TcpListener::bind("127.0.0.1:0").expect("a free port exists");
        let port = holder.local_addr().expect("bound").port();
        let wanted = Wanted {
            api: Some(port),
            ..Wanted::default()
        };
        let error = Ports::choose(&wanted, 9).expect_err("port is taken");
        assert!(error.to_string().contains(&port.to_string()), "{error}");
        assert!(!is_free(port));
    }
}
