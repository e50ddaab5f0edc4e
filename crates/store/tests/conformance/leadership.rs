//! Leadership: one process ingests, others stand by.

use crate::{fixture::*, on_both};

on_both!(one_leads_and_a_standby_takes_over);

async fn one_leads_and_a_standby_takes_over(fixture: &Fixture) {
    let standby = fixture.another().await;
    let mut leader = fixture
        .store
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    assert!(
        standby
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_none()
    );
    leader.check().await.expect("still leads");
    leader.release().await.expect("releases");

    let second = standby
        .try_acquire_leadership()
        .await
        .expect("asks")
        .expect("is free");
    assert!(
        fixture
            .store
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_none()
    );
    // A leader that dies does not release it.
    drop(second);
    for _ in 0..100 {
        if fixture
            .store
            .try_acquire_leadership()
            .await
            .expect("asks")
            .is_some()
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the leadership was not passed on");
}
