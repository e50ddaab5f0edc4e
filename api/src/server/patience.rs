//! Patience: how long a write may wait without its client taking anything in.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// Counts how long something waits.
pub(super) struct Patience {
    most: Duration,
    /// Runs while something waits; made when it first does, which of most connections nothing ever has to.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl Patience {
    /// Of this length.
    pub(super) const fn new(most: Duration) -> Self {
        Self {
            most,
            timer: None,
            is_waiting: false,
        }
    }

    /// What is done, or `None` when it has waited for too long. Each time that something is done it may wait anew.
    pub(super) fn poll<T>(&mut self, done: Poll<T>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if done.is_ready() {
            self.is_waiting = false;
            return done.map(Some);
        }
        let most = self.most;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(most)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + most);
        }
        timer.as_mut().poll(context).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};

    use futures::FutureExt;

    use super::*;

    const MOST: Duration = Duration::from_millis(50);

    /// What comes of this, for which it is waited anew.
    async fn outcome(patience: &mut Patience, waited_for: impl Future<Output = u8>) -> Option<u8> {
        let mut waited_for = Box::pin(waited_for);
        poll_fn(|context| {
            let done = waited_for.poll_unpin(context);
            patience.poll(done, context)
        })
        .await
    }

    #[tokio::test]
    async fn what_takes_too_long_is_given_up_and_what_does_not_may_wait_anew() {
        let mut patience = Patience::new(MOST);
        let begun = Instant::now();
        for number in 0..4 {
            let done = sleep(MOST / 2).map(|()| number);
            assert_eq!(outcome(&mut patience, done).await, Some(number));
        }
        assert!(begun.elapsed() >= 2 * MOST, "longer in all than each may");
        assert_eq!(outcome(&mut patience, async { 9 }).await, Some(9));
        let begun = Instant::now();
        assert_eq!(outcome(&mut patience, pending()).await, None);
        assert!(begun.elapsed() >= MOST);
    }
}
