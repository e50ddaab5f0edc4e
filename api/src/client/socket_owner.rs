//! Socket owner: the user who has the other end of a connection on this machine, as the kernel's tables say.
//!
//! What a proxy passes on without a header and under a loopback name looks as if it were made here, but comes through the
//! proxy's socket, and proxies serve strangers under users of their own.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use nix::unistd::geteuid;

/// The kernel's tables of TCP sockets. A socket of IPv6 that is connected to an IPv4 address is in the second.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// State of a connection that both ends hold. One that was given up shows as root's, whoever it was of.
const ESTABLISHED: &str = "01";

/// Whether the user under whom this process runs has the socket at `peer` that is connected to this process at `here`; not
/// where that cannot be seen.
///
/// Root is another user, unless this process is root's: who is root can become any user, and what passes on whole connections
/// was often started as root.
pub fn is_ours(peer: SocketAddr, here: SocketAddr) -> bool {
    let owner = TABLES.iter().find_map(|table| {
        let table = fs::read_to_string(table).ok()?;
        owner(&table, peer, here)
    });
    owner == Some(geteuid().as_raw())
}

/// The user who has the socket at `local` that is connected to `remote`, by a table of the kernel's.
fn owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let ends = [local, remote].map(|end| (end.ip().to_canonical(), end.port()));
    table.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let found = [end(columns.next()?)?, end(columns.next()?)?];
        let state = columns.next()?;
        // Between them: the queues, the timer, and how often was sent again.
        let user = columns.nth(3)?;
        (found == ends && state == ESTABLISHED).then(|| user.parse().ok())?
    })
}

/// Address and port, as `0100007F:1F90`: each word of the address is written as the number that this machine reads in it.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let (words, rest) = address.as_bytes().as_chunks::<8>();
    let mut bytes = Vec::with_capacity(16);
    for word in words {
        let word = u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(four) => Ipv4Addr::from(four).into(),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    rest.is_empty().then_some((address, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A listener of Sluice's user 1000; connections to it from a user's program (1000), from a proxy (33), and from one that
    /// has ended; and the ends of the first two that Sluice has.
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n\
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 23710 1 0000000000000000 100 0 0 10 0                     \n\
   1: 0100007F:2253 0100007F:CE1A 01 00000000:00000000 00:00000000 00000000  1000        0 24101 1 0000000000000000 20 4 30 10 -1                    \n\
   2: 0100007F:CE1A 0100007F:2253 01 00000000:00000000 02:0000085E 00000000  1000        0 24100 2 0000000000000000 20 4 0 10 -1                     \n\
   3: 0100007F:2253 0100007F:CE1C 01 00000000:00000000 00:00000000 00000000  1000        0 24103 1 0000000000000000 20 4 30 10 -1                    \n\
   4: 0100007F:CE1C 0100007F:2253 01 00000000:00000000 00:00000000 00000000    33        0 24102 1 0000000000000000 20 4 30 10 -1                    \n\
   5: 0100007F:CE1E 0100007F:2253 06 00000000:00000000 03:000013CB 00000000     0        0 0 3 0000000000000000                                      \n";

    /// Connections to `[::1]` from a user's program, and to an IPv4 address from one that has sockets of IPv6 alone.
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 00000000000000000000000001000000:2253 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 23711 1 0000000000000000 100 0 0 10 0\n\
   1: 00000000000000000000000001000000:D0F2 00000000000000000000000001000000:2253 01 00000000:00000000 00:00000000 00000000  1001        0 24200 1 0000000000000000 20 4 30 10 -1\n\
   2: 0000000000000000FFFF00000100007F:D0F4 0000000000000000FFFF00000100007F:2253 01 00000000:00000000 00:00000000 00000000  1002        0 24202 1 0000000000000000 20 4 30 10 -1\n";

    fn found(table: &str, local: &str, remote: &str) -> Option<u32> {
        let [local, remote] = [local, remote].map(|end| end.parse().expect("an address"));
        owner(table, local, remote)
    }

    #[test]
    fn the_user_of_the_other_end_is_found_and_not_that_of_this_end() {
        let here = "127.0.0.1:8787";
        assert_eq!(found(TCP, "127.0.0.1:52762", here), Some(1000));
        assert_eq!(found(TCP, "127.0.0.1:52764", here), Some(33));
        assert_eq!(found(TCP, "127.0.0.1:52762", "127.0.0.1:8788"), None);
        assert_eq!(found(TCP, "127.0.0.2:52762", here), None);
        assert_eq!(found(TCP, "127.0.0.1:52763", here), None);
        assert_eq!(found("", "127.0.0.1:52762", here), None);
    }

    #[test]
    fn a_connection_that_was_given_up_is_nobodys() {
        assert_eq!(found(TCP, "127.0.0.1:52766", "127.0.0.1:8787"), None);
    }

    #[test]
    fn addresses_of_both_kinds_and_mapped_ones_are_read() {
        assert_eq!(found(TCP6, "[::1]:53490", "[::1]:8787"), Some(1001));
        for [local, remote] in [
            ["127.0.0.1:53492", "127.0.0.1:8787"],
            ["[::ffff:127.0.0.1]:53492", "[::ffff:127.0.0.1]:8787"],
        ] {
            assert_eq!(found(TCP6, local, remote), Some(1002), "{local}");
        }
        let mapped = "[::ffff:127.0.0.1]:52764";
        assert_eq!(found(TCP, mapped, "127.0.0.1:8787"), Some(33));
    }

    #[test]
    fn lines_that_are_cut_or_no_lines_of_a_table_are_passed_over() {
        let whole = TCP.lines().nth(3).expect("a line");
        for len in 0..60 {
            let cut = &whole[..len];
            let after = format!("{cut}\n{TCP}");
            let here = "127.0.0.1:8787";
            assert_eq!(found(&after, "127.0.0.1:52762", here), Some(1000));
            assert_eq!(found(cut, "127.0.0.1:52762", here), None, "{cut}");
        }
    }

    #[test]
    fn a_connection_of_this_process_is_ours_and_one_that_is_not_there_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let here = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(here).expect("connects");
        let peer = stream.local_addr().expect("an address");
        assert!(is_ours(peer, here));
        assert!(!is_ours(here, here));
        drop((stream, listener));
        assert!(!is_ours(peer, here));
    }
}
