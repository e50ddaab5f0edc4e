//! Items of an answer that goes on: server-sent events or lines, each read as JSON when it is whole.

use std::{marker::PhantomData, time::Duration};

use reqwest::Response;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{
    error::{Error, Refusal},
    wire,
};

/// After how much silence a stream counts as lost: a sign of life comes every 15 seconds.
const IDLE: Duration = Duration::from_secs(40);

/// The longest line that is read. An event of a webhook may hold an account of 10 MiB in base64.
const LONGEST_LINE: usize = 32 * 1024 * 1024;

/// The name of the event with which the service ends a stream; its data is a problem.
const END: &str = "end";

/// How items follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Events,
    Lines,
}

impl Framing {
    /// The media type that is asked for.
    pub const fn media(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// The items of one connection.
#[derive(Debug)]
pub struct Items<T> {
    response: Response,
    framing: Framing,
    decoder: Decoder,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Items<T> {
    pub(crate) fn new(response: Response, framing: Framing) -> Self {
        Self {
            response,
            framing,
            decoder: Decoder::default(),
            of: PhantomData,
        }
    }

    /// The next item; nothing when the answer has ended.
    ///
    /// # Errors
    /// The problem with which the service ended the stream, [`Error::TimedOut`] after a silence of 40 seconds, or what happened
    /// to the connection.
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        loop {
            while let Some(line) = self.decoder.line()? {
                if let Some(item) = self.read(&line)? {
                    return Ok(Some(item));
                }
            }
            let chunk = timeout(IDLE, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| Error::TimedOut(IDLE))?;
            match chunk.map_err(Error::Connection)? {
                Some(chunk) => self.decoder.bytes.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// The newest id that the stream has named.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.decoder.id.as_deref()
    }

    /// After how long to connect again, where the stream says it.
    pub(crate) const fn retry(&self) -> Option<Duration> {
        self.decoder.retry
    }

    fn read(&mut self, line: &str) -> Result<Option<T>, Error> {
        if self.framing == Framing::Lines {
            if line.is_empty() {
                return Ok(None);
            }
            return serde_json::from_str(line).map_err(Error::Unreadable);
        }
        let Some((event, data)) = self.decoder.field(line) else {
            return Ok(None);
        };
        if event == END {
            return Err(ended(&data));
        }
        let item = serde_json::from_str(&data);
        item.map(Some).map_err(Error::Unreadable)
    }
}

/// Why the service ended a stream.
fn ended(data: &str) -> Error {
    match serde_json::from_str::<wire::Problem>(data) {
        Ok(problem) => Error::Refused(Box::new(Refusal {
            problem,
            request_id: None,
            attempts: 1,
        })),
        Err(error) => Error::Unreadable(error),
    }
}

/// Bytes that arrive, line by line, and the event that its lines make up (pure).
#[derive(Debug, Default)]
struct Decoder {
    bytes: Vec<u8>,
    /// How many bytes at the beginning are known to have no end of a line.
    searched: usize,
    event: String,
    data: Vec<String>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Decoder {
    /// The next whole line, without its end.
    fn line(&mut self) -> Result<Option<String>, Error> {
        let rest = &self.bytes[self.searched..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            if self.searched > LONGEST_LINE {
                return Err(Error::LineTooLong {
                    limit: LONGEST_LINE,
                });
            }
            return Ok(None);
        };
        let end = self.searched + end;
        let line = String::from_utf8_lossy(&self.bytes[..end]);
        let line = line.strip_suffix('\r').unwrap_or(&line).to_owned();
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(line))
    }

    /// Takes in a line of an event; the event's name and data when it is whole.
    fn field(&mut self, line: &str) -> Option<(String, String)> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then(|| (event, data.join("\n")));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => self.data.push(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => {
                let milliseconds = value.parse().map(Duration::from_millis);
                self.retry = milliseconds.ok().or(self.retry);
            }
            // A comment keeps an idle stream alive.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All events of a text that arrives in pieces of this many bytes.
    fn events(text: &str, piece: usize) -> Vec<(String, String)> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            decoder.bytes.extend_from_slice(piece);
            while let Some(line) = decoder.line().expect("no long line") {
                found.extend(decoder.field(&line));
            }
        }
        found
    }

    #[test]
    fn events_are_the_same_however_their_bytes_arrive() {
        let text = ": hello\n\nretry: 500\nevent: quote\nid: 7\ndata: {\"a\":\ndata: \"ä\"}\n\nevent:end\r\ndata:{}\r\n\r\ndata: half";
        for piece in 1..=text.len() {
            let found = events(text, piece);
            let expected = [("quote", "{\"a\":\n\"ä\"}"), ("end", "{}")];
            let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut decoder = Decoder {
            bytes: vec![b'a'; LONGEST_LINE],
            ..Decoder::default()
        };
        assert!(decoder.line().expect("not too long yet").is_none());
        decoder.bytes.push(b'a');
        decoder.line().expect_err("too long");
    }
}
