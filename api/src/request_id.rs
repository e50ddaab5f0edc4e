//! Request id: names a request in its answer and in the log, as the client named it or as it is made here.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use arrayvec::ArrayString;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header of a request and of every answer.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken from a client, bytes: twice that of a UUID, so that none in use is refused.
const LONGEST: usize = 72;

/// Most bytes of an id that is made: two numbers of sixteen hexadecimal digits, joined by a hyphen.
const MADE: usize = 33;

tokio::task_local! {
    static CURRENT: HeaderValue;
}

/// Runs the answering of a request under its id.
pub async fn under<F: Future>(id: HeaderValue, answer: F) -> F::Output {
    CURRENT.scope(id, answer).await
}

/// As [`under`], where the answer is there at once.
pub fn over<T>(id: HeaderValue, answer: impl FnOnce() -> T) -> T {
    CURRENT.sync_scope(id, answer)
}

/// The id of the request that is being answered, for the log.
#[must_use]
pub fn current() -> Option<String> {
    let id = CURRENT.try_with(|id| id.to_str().map(str::to_owned));
    id.ok()?.ok()
}

/// Makes ids, none twice in a process. Clones make different ones.
#[derive(Clone, Debug)]
pub struct RequestIds {
    process: ArrayString<MADE>,
    next: Arc<AtomicU64>,
}

impl RequestIds {
    /// Ids that begin with `process`, by which those of two processes differ.
    #[must_use]
    pub fn new(process: u64) -> Self {
        let mut text = ArrayString::new();
        push_hex(&mut text, process, 16);
        text.push('-');
        Self {
            process: text,
            next: Arc::default(),
        }
    }

    /// The id that the client gave, if it is well-formed, or a new one.
    #[must_use]
    pub fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let given = headers.get(X_REQUEST_ID);
        match given.filter(|id| is_well_formed(id.as_bytes())) {
            Some(id) => id.clone(),
            None => self.make(),
        }
    }

    fn make(&self) -> HeaderValue {
        let number = self.next.fetch_add(1, Relaxed);
        let mut text = self.process;
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
        push_hex(&mut text, number, digits);
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("none"))
    }
}

/// The last so many hexadecimal digits of a number. Each request is given an id, and the general formatting takes ten times
/// as long as the digits.
fn push_hex(text: &mut ArrayString<MADE>, number: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = u32::try_from(number >> (4 * place) & 0xf).unwrap_or(0);
        text.push(char::from_digit(digit, 16).unwrap_or('0'));
    }
}

/// Whether an id is what ids consist of: letters, digits and what joins them, so that it breaks no log.
fn is_well_formed(id: &[u8]) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=LONGEST).contains(&id.len()) && id.iter().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: &RequestIds, given: &str) -> String {
        let value = HeaderValue::from_str(given).expect("a value");
        let id = ids.of(&HeaderMap::from_iter([(X_REQUEST_ID, value)]));
        id.to_str().expect("text").to_owned()
    }

    #[test]
    fn a_well_formed_id_is_taken_and_any_other_replaced() {
        let ids = RequestIds::new(7);
        for id in [
            "a",
            "6b29fc40-ca47-1067-b31d-00dd010662da",
            "Root=1-67891233-abcdef",
        ] {
            assert_eq!(of(&ids, id), id);
        }
        for other in [
            "",
            "two words",
            "a\"b",
            "a,b",
            "é",
            &"x".repeat(LONGEST + 1),
        ] {
            let made = of(&ids, other);
            assert!(made.starts_with("0000000000000007-"), "{other}: {made}");
        }
    }

    #[test]
    fn a_made_id_is_the_process_and_the_number_in_hexadecimal_digits() {
        let ids = RequestIds::new(0x0123_4567_89ab_cdef);
        for number in [0, 1, 0xf, 0x10, 0xabc, u64::MAX] {
            ids.next.store(number, Relaxed);
            let expected = format!("0123456789abcdef-{number:x}");
            assert_eq!(ids.of(&HeaderMap::new()), expected.as_str());
        }
    }

    #[test]
    fn no_id_is_made_twice() {
        let ids = RequestIds::new(7);
        let none = HeaderMap::new();
        assert_ne!(ids.of(&none), ids.clone().of(&none));
    }
}
