//! Arrival of bytes at a socket, as the kernel stamped it (`SO_TIMESTAMPNS`).
//!
//! A server that shares its processors with who sends to it reads what came some time later; on a machine of its own it would not.

use std::{
    io::{self, IoSliceMut},
    os::fd::AsRawFd,
    time::{Duration, Instant, SystemTime},
};

use nix::{
    cmsg_space,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns},
        time::TimeSpec,
    },
};
use tokio::{io::Interest, net::TcpStream};

/// Most bytes read at once: most requests.
const AT_ONCE: usize = 8 * 1024;

/// Has what arrives from now on stamped.
pub(crate) fn stamp(connection: &TcpStream) -> io::Result<()> {
    Ok(setsockopt(connection, ReceiveTimestampns, &true)?)
}

/// Reads what is there behind what was read, and says when it arrived; `None` at the end. Of what the kernel has not stamped that is
/// now: it begins a moment after the first socket asks for it.
pub(crate) async fn read(
    connection: &TcpStream,
    read: &mut Vec<u8>,
) -> io::Result<Option<Instant>> {
    let known = read.len();
    read.resize(known + AT_ONCE, 0);
    let room = &mut read[known..];
    let received = connection.async_io(Interest::READABLE, || receive(connection, room));
    let received = received.await;
    let bytes = received.as_ref().map_or(0, |(bytes, _)| *bytes);
    read.truncate(known + bytes);
    received.map(|(bytes, at)| (bytes > 0).then_some(at))
}

fn receive(connection: &TcpStream, room: &mut [u8]) -> io::Result<(usize, Instant)> {
    let mut stamps = cmsg_space!(TimeSpec);
    let (mut room, no_flags) = ([IoSliceMut::new(room)], MsgFlags::empty());
    let socket = connection.as_raw_fd();
    let received = recvmsg::<()>(socket, &mut room, Some(&mut stamps), no_flags)?;
    let stamp = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    Ok((received.bytes, stamp.map_or_else(Instant::now, instant)))
}

/// The moment on the clock that does not jump. Between the two readings here is less than a microsecond.
fn instant(stamp: TimeSpec) -> Instant {
    let stamped = SystemTime::UNIX_EPOCH + Duration::from(stamp);
    let ago = stamped.elapsed().unwrap_or_default();
    let now = Instant::now();
    now.checked_sub(ago).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::{io::AsyncWriteExt, net::TcpListener, time::sleep};

    use super::*;

    /// Until the kernel stamps what arrives.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn what_waited_to_be_read_arrived_when_it_was_sent() -> io::Result<()> {
        const WAIT: Duration = Duration::from_millis(100);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut sender = TcpStream::connect(listener.local_addr()?).await?;
        let (receiver, _) = listener.accept().await?;
        stamp(&receiver)?;
        let begun = Instant::now();
        loop {
            sender.write_all(b"late").await?;
            let sent = Instant::now();
            sleep(WAIT).await;
            let mut bytes = b"what came before, ".to_vec();
            let at = read(&receiver, &mut bytes).await?.expect("was sent");
            assert_eq!(bytes, b"what came before, late");
            if at < sent + WAIT / 2 {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?} later", at - sent);
        }
        drop(sender);
        let mut bytes = b"all".to_vec();
        assert!(read(&receiver, &mut bytes).await?.is_none());
        assert_eq!(bytes, b"all");
        Ok(())
    }
}
