//! Response of a node: its body, of at most a given length, the error in it, and the pause that it asks for.

use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use thiserror::Error;

use super::refusal::WireError;

/// Longest answer that is taken, bytes: several times the largest block, and the addresses of far more accounts than are known
/// at once.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// Longest answer that may be an error.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Why a response has no body.
#[derive(Debug, Error)]
pub(super) enum BodyError {
    /// It is longer than is taken.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// It did not come to its end.
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// The body of a response.
///
/// # Errors
/// [`BodyError`].
pub(super) async fn body(response: Response) -> Result<Vec<u8>, BodyError> {
    bounded(response, LONGEST_ANSWER).await
}

/// The body, of at most this length. One that is announced to be longer is not begun.
async fn bounded(mut response: Response, longest: usize) -> Result<Vec<u8>, BodyError> {
    let announced = response.content_length().unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > longest {
        return Err(BodyError::TooLong(longest));
    }
    let mut body = Vec::with_capacity(announced);
    while let Some(chunk) = response.chunk().await? {
        if body.len().saturating_add(chunk.len()) > longest {
            return Err(BodyError::TooLong(longest));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The error in an answer, which is short: a block need not be looked through for one.
pub(super) fn error_of(body: &[u8]) -> Result<Option<WireError>, serde_json::Error> {
    if body.len() > MAX_ERROR_BYTES {
        return Ok(None);
    }
    #[derive(Deserialize)]
    struct Response {
        error: Option<WireError>,
    }
    serde_json::from_slice::<Response>(body).map(|response| response.error)
}

/// Seconds are what nodes and providers send; a date is not worth a parser here.
pub(super) fn seconds(value: &reqwest::header::HeaderValue) -> Option<Duration> {
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// A response of these bytes, from a server of one call.
    async fn responded(bytes: &'static str) -> Response {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            let (mut call, _) = listener.accept().await.expect("a call");
            let mut request = [0; 1024];
            let read = call.read(&mut request).await;
            assert!(read.expect("read") > 0);
            call.write_all(bytes.as_bytes()).await.expect("written");
        });
        let request = reqwest::Client::new().get(format!("http://{address}"));
        let response = request.timeout(Duration::from_secs(60)).send().await;
        response.expect("answered")
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_longest_length() {
        const ANNOUNCED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0123456789";
        const IN_PIECES: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                                 5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n";
        for bytes in [ANNOUNCED, IN_PIECES] {
            let body = bounded(responded(bytes).await, 10).await;
            assert_eq!(body.expect("it fits"), b"0123456789");
            let body = bounded(responded(bytes).await, 9).await;
            assert!(matches!(body, Err(BodyError::TooLong(9))), "{bytes}");
        }
    }
}
