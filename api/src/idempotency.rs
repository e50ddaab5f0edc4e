//! Idempotency: a request that is repeated under its key gets the answer that the first one got.
//!
//! A client that lost an answer may thus ask again without having two transactions that could both be executed.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName},
};
use parking_lot::Mutex;
use solana_pubkey::Pubkey;
use tokio::sync::OnceCell;

use crate::error::{ApiError, SwapRefusal};

/// The header that names a request across its repetitions (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest key, characters: what others that take one take.
const LONGEST: usize = 255;

/// How long an answer is repeated: longer than any blockhash lives, a minute of slots of 400 ms and on a slow chain one
/// and a half, so that of two transactions under one key the first is dead before the second is built.
const KEPT_FOR: Duration = Duration::from_secs(120);

/// The most answers that are kept; each is under 16 KiB with its request. Beyond, the oldest is forgotten.
const MOST_KEPT: usize = 4_096;

/// The key of a request, if it has one.
///
/// # Errors
/// [`ApiError::InvalidField`] for one that is empty, too long, or not of visible ASCII characters.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|text| {
        (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let key = text.ok_or_else(|| {
        let fault = format!("must be 1 to {LONGEST} visible ASCII characters, such as a UUID");
        ApiError::invalid("Idempotency-Key", fault)
    })?;
    Ok(Some(key.to_owned()))
}

/// A key, and the wallet that it is used for: two integrators' keys may be the same by chance.
type Name = (String, Pubkey);

/// The answers that may be asked for again.
#[derive(Default)]
pub struct IdempotentAnswers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_name: HashMap<Name, Arc<Answering>>,
    /// In the order in which they came.
    order: VecDeque<(Instant, Name, Weak<Answering>)>,
}

/// A request under a key, and its answer once there is one.
struct Answering {
    asked: String,
    answer: OnceCell<Bytes>,
}

impl IdempotentAnswers {
    /// The answer to what was `asked` for a wallet under a key: the first one's, or the one that `build` makes. Of those that
    /// come at the same time one builds and the others wait. A failure is not kept.
    ///
    /// # Errors
    /// [`SwapRefusal::IdempotencyKeyReused`] where something else was asked under the key; as `build`.
    pub async fn answer(
        &self,
        name: Name,
        asked: String,
        build: impl Future<Output = Result<Bytes, ApiError>>,
    ) -> Result<Bytes, ApiError> {
        let answering = self.0.lock().begin(Instant::now(), name, asked)?;
        let answer = answering.answer.get_or_try_init(|| build);
        answer.await.cloned()
    }
}

impl Kept {
    fn begin(
        &mut self,
        now: Instant,
        name: Name,
        asked: String,
    ) -> Result<Arc<Answering>, SwapRefusal> {
        self.forget(now);
        if let Some(known) = self.by_name.get(&name) {
            if known.asked == asked {
                return Ok(Arc::clone(known));
            }
            // What failed, and is not being tried, may be asked for otherwise.
            if known.answer.initialized() || Arc::strong_count(known) > 1 {
                return Err(SwapRefusal::IdempotencyKeyReused);
            }
        }
        let answering = Arc::new(Answering {
            asked,
            answer: OnceCell::new(),
        });
        let entry = (now, name.clone(), Arc::downgrade(&answering));
        self.order.push_back(entry);
        self.by_name.insert(name, Arc::clone(&answering));
        Ok(answering)
    }

    /// Makes place for one more, and forgets what is too old.
    fn forget(&mut self, now: Instant) {
        while let Some((came, name, answering)) = self.order.front() {
            let is_old = now.saturating_duration_since(*came) >= KEPT_FOR;
            if !is_old && self.order.len() < MOST_KEPT {
                return;
            }
            let current = self.by_name.get(name).map(Arc::as_ptr);
            if current == Some(answering.as_ptr()) {
                self.by_name.remove(name);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn name(key: &str) -> Name {
        (key.to_owned(), Pubkey::default())
    }

    #[test]
    fn keys_are_visible_ascii_of_at_most_255_characters() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_bytes(text.as_bytes()).expect("a header");
            headers.insert(IDEMPOTENCY_KEY, value);
            key(&headers).map_err(|error| error.code())
        };
        assert_eq!(of("8e03978e-40d5"), Ok(Some("8e03978e-40d5".to_owned())));
        for bad in ["", "two words", "\u{e9}", &"x".repeat(256)] {
            assert_eq!(of(bad), Err("invalid_field"), "{bad}");
        }
        assert!(key(&HeaderMap::new()).is_ok_and(|key| key.is_none()));
    }

    #[tokio::test]
    async fn the_first_answer_is_repeated_and_a_failure_is_not() {
        let answers = IdempotentAnswers::default();
        let ask = async |asked: &str, answer: Result<&'static str, ApiError>| {
            let build = async { answer.map(|text| Bytes::from_static(text.as_bytes())) };
            let answer = answers.answer(name("k"), asked.to_owned(), build).await;
            answer.map_err(|error| error.code())
        };
        let failed = ask("swap 1", Err(ApiError::RpcTimeout)).await;
        assert_eq!(failed, Err("rpc_timeout"));
        assert_eq!(ask("swap 2", Ok("two")).await, Ok("two".into()));
        assert_eq!(ask("swap 2", Ok("other")).await, Ok("two".into()));
        let reused = ask("swap 3", Ok("three")).await;
        assert_eq!(reused, Err("idempotency_key_reused"));
    }

    #[test]
    fn answers_are_forgotten_when_they_are_old_or_too_many() {
        let mut kept = Kept::default();
        let begun = Instant::now();
        let begin = |kept: &mut Kept, at: Instant, key: &str| {
            let begun = kept.begin(at, name(key), "swap".to_owned());
            Arc::as_ptr(&begun.unwrap_or_else(|error| panic!("{error}")))
        };
        let first = begin(&mut kept, begun, "first");
        let late = begun + KEPT_FOR - Duration::from_millis(1);
        assert_eq!(begin(&mut kept, late, "first"), first);
        begin(&mut kept, late, "second");
        begin(&mut kept, begun + KEPT_FOR, "third");
        assert!(!kept.by_name.contains_key(&name("first")));
        for number in 0..2 * MOST_KEPT {
            begin(&mut kept, begun + KEPT_FOR, &number.to_string());
        }
        assert_eq!(kept.by_name.len(), MOST_KEPT);
        assert_eq!(kept.order.len(), MOST_KEPT);
        assert!(!kept.by_name.contains_key(&name("second")));
    }
}
