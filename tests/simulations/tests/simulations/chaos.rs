//! Short run of what `cargo xtask chaos` does at length, on each database.

use std::time::Duration;

use sluice_simulations::chaos::{Disaster, Kind, Plan, run};

/// Enough for each thing that can be killed to be killed.
const KILLS: u32 = 12;

/// Any number; always the same.
const SEED: u64 = 7;

/// Everything owed arrives within seconds; a slow machine on which others run may take minutes.
const DRAINING: Duration = Duration::from_secs(15 * 60);

/// Those that end within seconds where several processes share a server; all of them befall the long run.
const TO_A_SERVER: [Disaster; 4] = [
    Disaster::PowerLoss,
    Disaster::Partition,
    Disaster::Failover,
    Disaster::Pooler,
];

async fn nothing_is_lost_on(kind: Kind, disasters: &[Disaster]) {
    let plan = Plan {
        kind,
        kills: KILLS,
        disasters: disasters.to_vec(),
        seed: SEED,
        draining: DRAINING,
    };
    let report = run(plan, |progress| println!("{progress}"))
        .await
        .expect("runs to its end");
    println!("{report}");
    assert!(report.is_clean(), "{:#?}", report.faults);
    assert!(report.kills.total() >= KILLS);
    for disaster in disasters {
        let times = report.outcomes.of.get(disaster);
        let times = times.map(|outcome| outcome.times);
        let wanted = disaster.befalls(kind).then_some(1);
        assert_eq!(times, wanted, "{disaster:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_sqlite() {
    nothing_is_lost_on(Kind::Sqlite, &Disaster::ALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_postgres() {
    nothing_is_lost_on(Kind::Postgres, &TO_A_SERVER).await;
}
