//! One indexes, others stand by.

use crate::{fixture::*, on_both};

on_both!(one_leads_and_a_standby_takes_over);

async fn one_leads_and_a_standby_takes_over(fixture: &Fixture) {
    let standby = fixture.another().await;
    let mut lead = fixture
        .store
        .try_lead()
        .await
        .expect("asks")
        .expect("nobody leads yet");
    assert!(standby.try_lead().await.expect("asks").is_none());
    lead.check().await.expect("still leads");
    lead.resign().await.expect("resigns");

    let second = standby.try_lead().await.expect("asks").expect("is free");
    assert!(fixture.store.try_lead().await.expect("asks").is_none());
    // A holder that dies does not resign.
    drop(second);
    for _ in 0..100 {
        if fixture.store.try_lead().await.expect("asks").is_some() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the lead was not passed on");
}
