//! The cache over a resolver that the test answers for.

use std::{collections::VecDeque, future::pending};

use tokio::{
    sync::Notify,
    task::{JoinSet, yield_now},
    time::sleep,
};

use super::*;
use crate::{
    client::SHORTEST_DEADLINE,
    error::SendError,
    resolve::{
        judged,
        places::{QUICK, SLOW},
    },
    target::Zone,
};

/// Longer than a test.
const LONG: Duration = Duration::from_secs(3600);

/// Far less than [`LONG`], and far more than a busy machine needs.
const AMPLE: Duration = Duration::from_secs(20);

/// What is answered, in turn; what comes after hangs, and so do the names of [`silent`].
struct Scripted {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
    /// Each answer waits for a notice, if there is one.
    gate: Option<Notify>,
}

impl Resolver for Arc<Scripted> {
    fn lookup(&self, name: &str) -> Lookup {
        self.asked.lock().push(name.to_owned());
        let (scripted, is_silent) = (Self::clone(self), name.starts_with("silent"));
        Box::pin(async move {
            if is_silent {
                return pending().await;
            }
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
    over(ages, answers, None)
}

/// One whose answers wait for notices of [`Scripted::gate`].
fn gated(
    ages: Ages,
    answers: impl IntoIterator<Item = io::Result<Vec<IpAddr>>>,
) -> (CachedResolver, Arc<Scripted>) {
    over(ages, answers, Some(Notify::new()))
}

fn over(
    ages: Ages,
    answers: impl IntoIterator<Item = io::Result<Vec<IpAddr>>>,
    gate: Option<Notify>,
) -> (CachedResolver, Arc<Scripted>) {
    let scripted = Arc::new(Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        asked: Mutex::default(),
        gate,
    });
    let resolver = CachedResolver::with_ages(Arc::new(Arc::clone(&scripted)), ages);
    (resolver, scripted)
}

const PATIENT: Ages = Ages {
    fresh: LONG,
    failed: LONG,
    stale: LONG,
    soon: LONG,
    patience: LONG,
    quick: LONG,
};

/// A short time, which a test waits for.
const SHORT: Duration = Duration::from_millis(5);

/// A name whose name server does not answer.
fn silent(number: usize) -> String {
    format!("silent{number}.example")
}

async fn in_time<F: Future>(awaited: F) -> F::Output {
    timeout(AMPLE, awaited).await.expect("in time")
}

/// Begins lookups of names, and waits until the resolver was asked for so many.
async fn begin_lookups(
    names: impl IntoIterator<Item = String>,
    resolver: &CachedResolver,
    scripted: &Scripted,
    asked: usize,
) {
    for name in names {
        tokio::spawn(resolver.lookup(&name));
    }
    until_asked(scripted, asked).await;
}

async fn until_asked(scripted: &Scripted, names: usize) {
    while scripted.asked.lock().len() < names {
        yield_now().await;
    }
}

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
    let (resolver, scripted) = gated(PATIENT, [Ok(address(1))]);
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

#[tokio::test]
async fn old_addresses_are_given_soon_while_silent_name_servers_have_all_the_places() {
    let ages = Ages {
        fresh: Duration::ZERO,
        soon: SHORT,
        ..PATIENT
    };
    let (resolver, scripted) = resolver(ages, [Ok(address(1))]);
    resolver.lookup("good.example").await.expect("resolves");
    begin_lookups((0..QUICK).map(silent), &resolver, &scripted, 1 + QUICK).await;
    let good = in_time(resolver.lookup("good.example")).await;
    assert_eq!(good.expect("is known"), address(1));
    assert!(
        4 * AGES.soon <= SHORTEST_DEADLINE,
        "an attempt has time left"
    );
}

#[tokio::test]
async fn a_lookup_goes_on_behind_the_old_addresses_that_were_given() {
    let ages = Ages {
        fresh: Duration::ZERO,
        soon: SHORT,
        ..PATIENT
    };
    let (resolver, scripted) = gated(ages, [Ok(address(1)), Ok(address(2))]);
    let gate = scripted.gate.as_ref().expect("a gate");
    gate.notify_one();
    for _ in 0..3 {
        let addresses = in_time(resolver.lookup("a.example")).await;
        assert_eq!(addresses.expect("is known"), address(1));
    }
    assert_eq!(scripted.asked.lock().len(), 2, "the second is in progress");
    gate.notify_one();
    while resolver.0.names.lock()["a.example"].lookup.is_some() {
        yield_now().await;
    }
    let addresses = in_time(resolver.lookup("a.example")).await;
    assert_eq!(addresses.expect("is known"), address(2));
}

#[tokio::test]
async fn old_addresses_are_judged_each_time_that_they_are_given() {
    let ages = Ages {
        fresh: Duration::ZERO,
        soon: SHORT,
        ..PATIENT
    };
    let public = IpAddr::from([8, 8, 4, 4]);
    let (resolver, _) = resolver(ages, [Ok(vec![public])]);
    let nobodys = std::iter::empty().collect();
    for _ in 0..2 {
        let addresses = in_time(judged(&resolver, &nobodys, Zone::Public, "a.example")).await;
        assert_eq!(addresses.expect("is public"), [public]);
    }
    let own = std::iter::once(public).collect();
    let fault = in_time(judged(&resolver, &own, Zone::Public, "a.example")).await;
    assert!(matches!(fault, Err(SendError::Target(_))), "{fault:?}");
}

#[tokio::test]
async fn a_new_name_is_resolved_while_hundreds_of_name_servers_are_silent() {
    let ages = Ages {
        quick: SHORT,
        ..PATIENT
    };
    let (resolver, scripted) = resolver(ages, [Ok(address(1))]);
    let names = (0..5 * QUICK).map(silent);
    begin_lookups(names, &resolver, &scripted, QUICK).await;
    let good = in_time(resolver.lookup("good.example")).await;
    assert_eq!(good.expect("resolves"), address(1));
}

#[tokio::test]
async fn a_slow_name_is_resolved_all_the_same() {
    let ages = Ages {
        quick: SHORT,
        ..PATIENT
    };
    let (resolver, scripted) = gated(ages, [Ok(address(1))]);
    let slow = tokio::spawn(resolver.lookup("slow.example"));
    until_asked(&scripted, 1).await;
    sleep(4 * SHORT).await;
    scripted.gate.as_ref().expect("a gate").notify_one();
    assert_eq!(slow.await.expect("ends").expect("resolves"), address(1));
}

#[tokio::test]
async fn a_silent_name_fails_where_too_many_others_are_silent() {
    let ages = Ages {
        quick: SHORT,
        ..PATIENT
    };
    let (resolver, _) = resolver(ages, []);
    let names = (0..=SLOW).map(silent);
    let mut lookups: JoinSet<_> = names.map(|name| resolver.lookup(&name)).collect();
    let first = in_time(lookups.join_next()).await;
    let error = first.expect("one").expect("ends").expect_err("no place");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("too many others"), "{error}");
    sleep(4 * SHORT).await;
    assert!(lookups.try_join_next().is_none(), "the others have places");
}

#[tokio::test]
async fn names_of_one_domain_wait_for_each_other_and_no_other_domain_for_them_all() {
    let (resolver, scripted) = gated(PATIENT, [down(), down()]);
    let of_one = (0..2 * QUICK).map(|number| format!("{number}.one.example"));
    begin_lookups(of_one, &resolver, &scripted, QUICK).await;
    tokio::spawn(resolver.lookup("good.example"));
    while resolver.0.names.lock().len() <= 2 * QUICK {
        yield_now().await;
    }
    // Its lookup was begun with that, and waits for a place after this.
    yield_now().await;
    let gate = scripted.gate.as_ref().expect("a gate");
    for asked in [QUICK + 1, QUICK + 2] {
        gate.notify_one();
        until_asked(&scripted, asked).await;
    }
    assert_eq!(scripted.asked.lock()[QUICK + 1], "good.example");
}
