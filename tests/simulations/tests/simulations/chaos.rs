//! Short run of what `cargo xtask chaos` does at length, on each database.

use std::time::Duration;

use sluice_simulations::chaos::{Disaster, Kind, Plan, run};

/// Enough for each thing that can be killed to be killed, and for a process to be suspended.
const KILLS: u32 = 12;

/// Any number; always the same.
const SEED: u64 = 7;

/// Everything owed arrives within seconds; a busy machine may take longer.
const DRAINING: Duration = Duration::from_secs(200);

async fn nothing_is_lost_on(kind: Kind) {
    let plan = Plan {
        kind,
        kills: KILLS,
        disasters: Disaster::ALL.to_vec(),
        seed: SEED,
        draining: DRAINING,
    };
    let report = run(plan, |progress| println!("{progress}"))
        .await
        .expect("runs to its end");
    println!("{report}");
    assert!(report.is_clean(), "{:#?}", report.faults);
    assert!(report.kills.total() >= KILLS);
    assert!(report.suspended > 0);
    for disaster in Disaster::ALL {
        let times = report
            .outcomes
            .of
            .get(&disaster)
            .map(|outcome| outcome.times);
        let wanted = disaster.befalls(kind).then_some(1);
        assert_eq!(times, wanted, "{disaster:?}");
    }
    // One that stood still in the middle of a write to a file was not followed.
    assert!(kind == Kind::Sqlite || report.outcomes.refused_writes > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_sqlite() {
    nothing_is_lost_on(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_postgres() {
    nothing_is_lost_on(Kind::Postgres).await;
}
