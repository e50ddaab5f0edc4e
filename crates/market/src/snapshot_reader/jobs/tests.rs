//! Jobs of the snapshot reader: repeated, split or given up by what the node refused.

use super::*;

const METHOD: &str = "getProgramAccounts";
const PATIENCE: Duration = Duration::from_secs(600);

fn failed(job: Job, error: SnapshotError, fruitless: Duration) -> Next {
    job.failed(error, fruitless, PATIENCE, u32::MAX)
}

fn pools() -> Job {
    Job::new(CallTarget::Pools(Part::default()))
}

fn lost() -> SnapshotError {
    SnapshotError::Lost {
        method: METHOD,
        reason: String::new(),
    }
}

fn refused() -> SnapshotError {
    SnapshotError::Refused {
        method: METHOD,
        message: String::new(),
    }
}

#[test]
fn a_call_refused_for_its_rate_waits_as_long_as_it_was_asked_to() {
    let limited = |seconds| SnapshotError::RateLimited {
        method: METHOD,
        message: String::new(),
        retry_after: Some(Duration::from_secs(seconds)),
    };
    let Next::Repeat(job, pause) = failed(pools(), limited(3), Duration::ZERO) else {
        panic!("given up");
    };
    assert_eq!(pause, Duration::from_secs(3));
    let Next::Repeat(_, pause) = failed(job, limited(0), Duration::ZERO) else {
        panic!("given up");
    };
    assert_eq!(pause, service_kit::backoff::FIRST_PAUSE * 2, "backs off");
}

#[test]
fn what_no_repetition_mends_is_given_up_at_once() {
    for error in [
        SnapshotError::Unauthorized {
            method: METHOD,
            status: 401,
        },
        SnapshotError::Unavailable {
            method: METHOD,
            message: String::new(),
        },
    ] {
        assert!(matches!(
            failed(pools(), error, Duration::ZERO),
            Next::GiveUp(_)
        ));
    }
}

#[test]
fn a_list_that_is_too_large_is_split_down_to_the_last_part() {
    let too_large = || SnapshotError::TooLarge {
        method: METHOD,
        message: String::new(),
    };
    let mut wanted = CallTarget::Pools(Part::default());
    for _ in 0..2 {
        let Next::Split(parts) = failed(Job::new(wanted), too_large(), Duration::ZERO) else {
            panic!("not split");
        };
        wanted = parts.into_iter().next_back().expect("256 parts");
    }
    let last = failed(Job::new(wanted), too_large(), Duration::ZERO);
    assert!(matches!(last, Next::GiveUp(_)));
}

#[test]
fn a_list_whose_answers_are_late_or_break_off_is_split() {
    let late = || SnapshotError::Late {
        method: METHOD,
        reason: String::new(),
    };
    for (times, error) in [(LATE_ANSWERS, late()), (LOST_ANSWERS, lost())] {
        let mut job = pools();
        for _ in 1..times {
            let Next::Repeat(again, _) = failed(job, error.clone(), Duration::ZERO) else {
                panic!("not repeated");
            };
            job = again;
        }
        let split = failed(job, error, Duration::ZERO);
        assert!(matches!(split, Next::Split(_)));
    }
}

#[test]
fn accounts_are_asked_for_in_halves_and_one_alone_is_repeated() {
    let keys: Vec<Pubkey> = (0..3).map(|byte| Pubkey::from([byte; 32])).collect();
    let halves = CallTarget::Accounts(keys.clone()).split().expect("three");
    assert_eq!(
        halves,
        [&keys[..1], &keys[1..]].map(|half| CallTarget::Accounts(half.to_vec()))
    );
    let mut job = Job::new(halves.into_iter().next().expect("two"));
    for _ in 0..5 {
        let Next::Repeat(again, _) = failed(job, lost(), Duration::ZERO) else {
            panic!("not repeated");
        };
        job = again;
    }
}

#[test]
fn oddities_are_borne_a_few_times_and_outages_as_long_as_there_is_patience() {
    let mut job = pools();
    for _ in 1..ODD_ATTEMPTS {
        let Next::Repeat(again, _) = failed(job, refused(), Duration::ZERO) else {
            panic!("not repeated");
        };
        job = again;
    }
    assert!(matches!(
        failed(job, refused(), Duration::ZERO),
        Next::GiveUp(_)
    ));
    let unreachable = || SnapshotError::Unreachable {
        method: METHOD,
        reason: String::new(),
    };
    let just = PATIENCE - Duration::from_millis(1);
    assert!(matches!(
        failed(pools(), unreachable(), just),
        Next::Repeat(..)
    ));
    assert!(matches!(
        failed(pools(), unreachable(), PATIENCE),
        Next::GiveUp(_)
    ));
}

#[test]
fn pauses_grow_while_nothing_is_answered_and_stay_short_among_answers() {
    let last_pause = |fruitless| {
        let (mut job, mut last) = (pools(), Duration::ZERO);
        for _ in 0..20 {
            let unwell = SnapshotError::Unreachable {
                method: METHOD,
                reason: String::new(),
            };
            let Next::Repeat(again, pause) = failed(job, unwell, fruitless) else {
                panic!("given up");
            };
            (job, last) = (again, pause);
        }
        last
    };
    assert_eq!(last_pause(Duration::ZERO), PAUSE_AMONG_ANSWERS);
    assert_eq!(last_pause(Duration::from_secs(2)), Duration::from_secs(4));
    let minute = Duration::from_secs(60);
    assert_eq!(last_pause(minute), service_kit::backoff::LONGEST_PAUSE);
}

#[test]
fn a_node_behind_the_stream_is_awaited_for_a_while() {
    let behind = || SnapshotError::Behind {
        method: METHOD,
        slot: 7,
    };
    let Next::Repeat(job, pause) = failed(pools(), behind(), Duration::ZERO) else {
        panic!("not repeated");
    };
    assert_eq!(pause, NOT_REACHED_PAUSE);
    assert!(matches!(
        failed(job, behind(), NOT_REACHED_PATIENCE),
        Next::GiveUp(_)
    ));
}

#[test]
fn jobs_come_when_they_are_due() {
    let (mut jobs, now) = (Jobs::default(), Instant::now());
    assert_eq!(jobs.next_at(now), None);
    let [early, late] = [1, 2].map(|seconds| now + Duration::from_secs(seconds));
    jobs.delay(pools(), late);
    jobs.delay(pools(), early);
    assert_eq!(jobs.next_at(now), Some(early));
    assert!(jobs.take(now).is_none());
    jobs.add(CallTarget::Accounts(Vec::new()));
    assert_eq!(jobs.next_at(now), Some(now));
    let taken = |jobs: &mut Jobs, at| jobs.take(at).map(|job| job.wanted.method());
    assert_eq!(taken(&mut jobs, early), Some(METHOD));
    assert_eq!(taken(&mut jobs, early), Some("getMultipleAccounts"));
    assert_eq!(taken(&mut jobs, early), None);
    assert_eq!(taken(&mut jobs, late), Some(METHOD));
}
