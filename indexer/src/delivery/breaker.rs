//! Circuit breaker and adaptive concurrency of one endpoint (pure).
//!
//! The retry schedule is about one message; this is about the endpoint. While the breaker is closed, messages flow, as
//! many at once as the endpoint has shown to bear. An endpoint that says it has too much (429, 502, 504, or
//! Retry-After) pauses for a while and then gets half as many at once. One that fails
//! [`FAILURES_TO_OPEN`] times in a row, or for [`FAILING_TO_OPEN`] where its messages are delivered in order and so make few
//! attempts, trips the breaker: nothing is sent before a pause is over, and then one
//! message, the probe. A probe that fails doubles the pause; one that is accepted is followed by a second, and then
//! messages flow again, slowly first. Nothing is lost meanwhile: what is not attempted does not move on in
//! its schedule.

use std::time::Duration;

use sluice_store::{Breaker, EndpointState, Observation, Timestamp};

use super::limits::{FIRST_CONCURRENCY, LEAST_CONCURRENCY};

/// Failed attempts in a row after which the breaker trips: more than one restart of an endpoint fails, with
/// several messages in flight, less than a minute of a busy webhook.
pub const FAILURES_TO_OPEN: u32 = 10;

/// How long an endpoint must have failed, more than once, for its breaker to trip where messages are delivered in order: their
/// retries are so far apart that ten of them take days.
pub const FAILING_TO_OPEN: Duration = Duration::from_secs(60);

/// First pause after the breaker tripped.
pub const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// Longest pause: an endpoint that heals is noticed within it.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Pause of an endpoint that has too much and does not say for how long.
pub const SLOW_DOWN: Duration = Duration::from_secs(5);

/// Longest pause of all messages that an endpoint can ask for. A single message may be put off for longer.
pub const LONGEST_SLOW_DOWN: Duration = Duration::from_secs(60 * 60);

/// Pauses are spread by this fraction to either side, so that endpoints behind one proxy do not return
/// together.
const JITTER: f64 = 0.2;

/// The state of an endpoint after an attempt that began at `started` and ended at `ended`. `most` is the most
/// attempts that may be in flight to an endpoint; `in_order` whether messages wait for this one; `jitter` any uniformly drawn
/// number.
#[must_use]
pub fn on_attempt(
    state: EndpointState,
    observation: Observation,
    (started, ended): (Timestamp, Timestamp),
    most: u32,
    in_order: bool,
    jitter: u32,
) -> EndpointState {
    // Of several in flight when the endpoint was paused, the first one's result counts.
    let known = state.paused_until.is_some_and(|until| started < until);
    match observation {
        Observation::Accepted => accepted(state, ended, most),
        Observation::Failed if known && state.breaker != Breaker::Closed => state,
        Observation::Failed => failed(state, ended, in_order, jitter),
        Observation::Overloaded(asked) => {
            let slowed = if known {
                state
            } else {
                EndpointState {
                    concurrency_limit: Some(
                        (state.concurrency_limit.unwrap_or(most) / 2).max(LEAST_CONCURRENCY),
                    ),
                    ..failed(state, ended, in_order, jitter)
                }
            };
            let asked = asked.unwrap_or(SLOW_DOWN).min(LONGEST_SLOW_DOWN);
            let until = ended.after(spread(asked, jitter).max(asked));
            EndpointState {
                paused_until: slowed.paused_until.max(Some(until)),
                ..slowed
            }
        }
    }
}

fn accepted(state: EndpointState, ended: Timestamp, most: u32) -> EndpointState {
    match state.breaker {
        Breaker::Closed => EndpointState {
            failures: 0,
            failing_since: None,
            trips: 0,
            // One accepted message does not end the pause that another one was asked for.
            paused_until: state.paused_until.filter(|until| ended < *until),
            // Twice as many after each accepted message, until there is no need to count.
            concurrency_limit: state
                .concurrency_limit
                .map(|now| now.saturating_mul(2))
                .filter(|next| *next < most),
            ..state
        },
        Breaker::Open => EndpointState {
            breaker: Breaker::HalfOpen,
            failures: 0,
            failing_since: None,
            paused_until: None,
            ..state
        },
        Breaker::HalfOpen => EndpointState {
            breaker: Breaker::Closed,
            failures: 0,
            failing_since: None,
            trips: 0,
            paused_until: None,
            concurrency_limit: Some(FIRST_CONCURRENCY).filter(|few| *few < most),
        },
    }
}

fn failed(state: EndpointState, ended: Timestamp, in_order: bool, jitter: u32) -> EndpointState {
    let failures = state.failures.saturating_add(1);
    let since = state.failing_since.filter(|_| state.failures > 0);
    let since = since.unwrap_or(ended);
    let for_long = in_order && since.after(FAILING_TO_OPEN) <= ended;
    if state.breaker == Breaker::Closed && failures < FAILURES_TO_OPEN && !for_long {
        return EndpointState {
            failures,
            failing_since: Some(since),
            ..state
        };
    }
    let pause = FIRST_PAUSE
        .saturating_mul(1u32.checked_shl(state.trips).unwrap_or(u32::MAX))
        .min(LONGEST_PAUSE);
    EndpointState {
        breaker: Breaker::Open,
        failures,
        failing_since: Some(since),
        trips: state.trips.saturating_add(1),
        paused_until: Some(ended.after(spread(pause, jitter))),
        concurrency_limit: state.concurrency_limit,
    }
}

fn spread(pause: Duration, jitter: u32) -> Duration {
    pause.mul_f64(1.0 + JITTER * (2.0 * f64::from(jitter) / f64::from(u32::MAX) - 1.0))
}

#[cfg(test)]
mod tests;
