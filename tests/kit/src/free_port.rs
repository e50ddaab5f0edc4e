//! Ports of the loopback interface that nothing listens on.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Mutex, PoisonError},
};

use tokio::net::TcpSocket;

/// What keeps the ports from being given to others, as long as the process runs.
static KEPT: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// An address of the loopback interface that nothing listens on, and that the system gives to no other socket of its own
/// choice: many tests run at once. Connections to it are refused until something listens.
///
/// # Errors
/// When the system has none.
pub fn free_address() -> io::Result<SocketAddr> {
    // The port stays bound, and never listens. Linux lets a second socket listen there by its number, if both are to
    // reuse addresses, as the sockets of all servers are.
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(socket);
    Ok(address)
}

/// The port of a [`free_address`].
///
/// # Errors
/// When the system has none.
pub fn free_port() -> io::Result<u16> {
    Ok(free_address()?.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_free_port_refuses_until_something_listens_and_is_kept() {
        let address = free_address().expect("a port");
        let refused = TcpStream::connect(address).expect_err("nothing listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind(address).expect("it is free");
        TcpStream::connect(address).expect("it listens");
        drop(listener);
        // A socket that is to have any port may have none that is bound, as one that reuses no address.
        let other = TcpSocket::new_v4().expect("a socket");
        let taken = other.bind(address).expect_err("it is kept");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
