//! The cache over a resolver that the test answers for.

use std::{collections::VecDeque, future::pending};

use tokio::sync::Notify;

use super::*;

/// Longer than a test.
const LONG: Duration = Duration::from_secs(3600);

/// What is answered, in turn; what comes after hangs.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
    /// Each answer waits for a notice, if there is one.
    gate: Option<Notify>,
}

impl Resolver for Arc<Scripted> {
    fn lookup(&self, name: &str) -> Lookup {
        self.asked.lock().push(name.to_owned());
        let scripted = Self::clone(self);
        Box::pin(async move {
            if let Some(gate) = &scripted.gate {
                gate.notified().await;
            }
            let answer = scripted.answers.lock().pop_front();
            match answer {
                Some(answer) => answer,
                None => pending().await,
            }
        })
    }
}

fn address(last: u8) -> Vec<IpAddr> {
    vec![IpAddr::from([192, 0, 2, last])]
}

fn resolver(
    ages: Ages,
    answers: impl IntoIterator<Item = io::Result<Vec<IpAddr>>>,
) -> (CachedResolver, Arc<Scripted>) {
    let scripted = Arc::new(Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        ..Scripted::default()
    });
    let resolver = CachedResolver::with_ages(Arc::new(Arc::clone(&scripted)), ages);
    (resolver, scripted)
}

const PATIENT: Ages = Ages {
    fresh: LONG,
    failed: LONG,
    stale: LONG,
    patience: LONG,
};

fn down() -> io::Result<Vec<IpAddr>> {
    Err(io::Error::new(io::ErrorKind::NotFound, "no such name"))
}

#[tokio::test]
async fn an_answer_is_given_again_and_a_failure_too() {
    let (resolver, scripted) = resolver(PATIENT, [Ok(address(1)), down()]);
    for _ in 0..3 {
        assert_eq!(
            resolver.lookup("a.example").await.expect("resolves"),
            address(1)
        );
    }
    for _ in 0..3 {
        let error = resolver.lookup("b.example").await.expect_err("fails");
        assert_eq!(error.to_string(), "no such name");
    }
    assert_eq!(
        *scripted.asked.lock(),
        ["a.example", "b.example"],
        "once each"
    );
}

#[tokio::test]
async fn all_who_wait_for_a_name_wait_for_one_lookup() {
    let scripted = Arc::new(Scripted {
        answers: Mutex::new([Ok(address(1))].into()),
        gate: Some(Notify::new()),
        ..Scripted::default()
    });
    let resolver = CachedResolver::with_ages(Arc::new(Arc::clone(&scripted)), PATIENT);
    let first = resolver.lookup("a.example");
    let second = resolver.lookup("a.example");
    let open = async { scripted.gate.as_ref().expect("a gate").notify_one() };
    let (first, second, ()) = tokio::join!(first, second, open);
    assert_eq!(first.expect("resolves"), second.expect("resolves"));
    assert_eq!(scripted.asked.lock().len(), 1);
}

#[tokio::test]
async fn old_addresses_are_used_while_the_name_cannot_be_resolved() {
    let ages = Ages {
        fresh: Duration::ZERO,
        failed: Duration::ZERO,
        ..PATIENT
    };
    let (resolver, scripted) = resolver(ages, [Ok(address(1)), down(), Ok(address(2))]);
    for expected in [1, 1, 2] {
        let addresses = resolver.lookup("a.example").await.expect("resolves");
        assert_eq!(addresses, address(expected));
    }
    assert_eq!(scripted.asked.lock().len(), 3);
}

#[tokio::test]
async fn a_name_that_is_not_answered_is_given_up_and_asked_for_no_second_time_meanwhile() {
    let ages = Ages {
        patience: Duration::from_millis(10),
        ..PATIENT
    };
    let (resolver, scripted) = resolver(ages, []);
    for _ in 0..3 {
        let error = resolver.lookup("a.example").await.expect_err("hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
    assert_eq!(scripted.asked.lock().len(), 1, "one lookup is in progress");
}

#[tokio::test]
async fn no_more_names_are_kept_than_there_is_room_for() {
    let ages = Ages {
        fresh: Duration::ZERO,
        stale: Duration::ZERO,
        ..PATIENT
    };
    let answers = (0..NAMES + 10).map(|_| Ok(address(1)));
    let (resolver, _) = resolver(ages, answers);
    for number in 0..NAMES + 10 {
        let name = format!("{number}.example");
        resolver.lookup(&name).await.expect("resolves");
    }
    assert!(resolver.0.names.lock().len() <= NAMES);
}
