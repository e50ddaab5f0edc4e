//! Limits of the stream, each with its reason.

use std::time::Duration;

/// Largest message accepted. Mainnet blocks of 24 MB have been seen; the protocol's own default of
/// 4 MiB ends streams on a busy day.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Most updates read before they are queued: the consumer should not wait for more of them.
pub const READ_AT_ONCE: usize = 256;

/// Updates held between the reader and the consumer, give or take those read at once. About a quarter
/// of a second of everything a mainnet validator writes, and minutes of one exchange: a longer pause
/// of the consumer is shown to the server as back-pressure instead of growing this process.
pub const QUEUED_UPDATES: usize = 4096;

/// Time to reach the server, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for the server to accept a subscription once connected.
pub const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest pause between two attempts to connect: a server that returns is noticed within this time, and an attempt a second
/// burdens neither side.
pub const LONGEST_RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Silence after which the stream counts as dead. Servers ping every 10 to 15 seconds and send
/// every slot, so this allows one lost ping and no more.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Time without an update after which a stream of slots counts as dead although it pings: a server answers pings by another task
/// than the one that streams. A chain on which nothing happens for so long costs a connection, and nothing else.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of HTTP/2 pings, which notice a connection whose other end vanished and keep proxies
/// from dropping an idle direction.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Time for the answer to an HTTP/2 ping.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest filter name that servers accept.
pub const MAX_FILTER_NAME_BYTES: usize = 128;

/// Most strands of one stream. Each is a connection with a thread of its own, and some servers allow a client no more than
/// tens of them.
pub const MAX_STRANDS: usize = 32;
