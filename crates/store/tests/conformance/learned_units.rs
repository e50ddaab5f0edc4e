//! Learned units: what was kept last is what the next process reads.

use crate::{fixture::*, on_both};

on_both!(what_was_kept_last_is_read);

async fn what_was_kept_last_is_read(fixture: &Fixture) {
    assert_eq!(fixture.store.learned_units().await.expect("reads"), None);
    for learned in ["{\"start\":1050}", "{}"] {
        fixture
            .store
            .keep_learned_units(learned)
            .await
            .expect("keeps");
    }
    let next = fixture.another().await;
    let read = next.learned_units().await.expect("reads");
    assert_eq!(read.as_deref(), Some("{}"));
}
