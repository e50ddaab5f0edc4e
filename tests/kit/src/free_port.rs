//! Ports of the loopback interface that nothing listens on.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

/// An address of the loopback interface that nothing listens on. Another process may take it before it is used.
///
/// # Errors
/// When the system has none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The port of a [`free_address`].
///
/// # Errors
/// When the system has none.
pub fn free_port() -> io::Result<u16> {
    Ok(free_address()?.port())
}
