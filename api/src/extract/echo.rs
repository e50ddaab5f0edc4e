//! Echo: what an error repeats of what a caller wrote, which may be as long as a request.

/// The most that is repeated, in characters: enough to find it again.
const MOST: usize = 80;

/// Its beginning.
#[must_use]
pub fn echoed(text: &str) -> String {
    text.chars().take(MOST).collect()
}
