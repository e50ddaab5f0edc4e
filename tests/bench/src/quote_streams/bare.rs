//! Bare streams: a loop that writes as many bytes to as many readers, with nothing before it, to compare quote streams with.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::SystemTime,
};

use service_kit::Clock;
use socket2::{Domain, Socket, Type};

use super::LISTENS;
use crate::http::{FIRST_SLOT, SLOT_TIME};

/// First argument of the process that serves bare streams; the second is the length of an event.
pub const CHILD: &str = "serve-bare-streams";

/// Most connections that the kernel completes before they are taken in, as many as the API has: all readers connect at once,
/// and one that finds no room asks again only after a second, and then after ever longer.
const BACKLOG: i32 = 16 * 1024;

/// Serves: says where, and then of each event when it began to write it.
///
/// # Errors
/// When no port can be bound.
pub fn serve(event_length: usize) -> anyhow::Result<()> {
    let listener = listen()?;
    println!("{LISTENS}{}", listener.local_addr()?);
    let readers = Arc::new(Mutex::new(Vec::new()));
    let accepted = Arc::clone(&readers);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let opened = stream.and_then(opened);
            let mut readers = accepted.lock().unwrap_or_else(PoisonError::into_inner);
            readers.extend(opened);
        }
    });
    for slot in FIRST_SLOT + 1.. {
        thread::sleep(SLOT_TIME);
        let event = event(slot, event_length);
        let begun = Clock::system().now();
        let begun = begun.duration_since(SystemTime::UNIX_EPOCH);
        // Who has gone is no reader any more.
        let mut readers = readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain_mut(|reader| reader.write_all(event.as_bytes()).is_ok());
        println!("{slot} {}", begun.unwrap_or_default().as_nanos());
    }
    Ok(())
}

/// Listens at a free port. The standard library's own way has room for 128 connections.
fn listen() -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A stream whose request is read, to its empty line, and whose head is answered.
fn opened(mut stream: TcpStream) -> io::Result<TcpStream> {
    let mut head = Vec::new();
    let mut bytes = [0; 1_024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => head.extend(bytes.iter().take(read)),
        }
    }
    stream.set_nodelay(true)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
    Ok(stream)
}

fn event(slot: u64, length: usize) -> String {
    let head = format!("id: {slot}\ndata: ");
    let padding = length.saturating_sub(head.len() + 2);
    format!("{head}{}\n\n", "0".repeat(padding))
}
