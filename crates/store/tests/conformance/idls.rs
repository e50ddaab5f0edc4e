//! IDLs: each owner has its own, within bounds, and what the chain has is kept for all.

use sluice_store::{
    Access, ApiKeyId, ChainIdl, MAX_IDL_BYTES, MAX_OWNER_IDL_BYTES, Store, StoreError, UploadedIdl,
};

use crate::{fixture::*, on_both};

on_both!(
    each_owner_has_its_own_idl_of_a_program,
    an_owner_has_no_more_than_is_held_in_memory,
    what_the_chain_has_is_kept_and_forgotten,
    whoever_adopts_webhooks_has_their_idls,
);

fn idl(text: &str) -> UploadedIdl {
    UploadedIdl {
        text: text.to_owned(),
        uploaded: NOW,
    }
}

async fn upload(store: &Store, access: &Access, program: u8, text: &str) {
    let (program, idl) = (address(program), idl(text));
    let uploaded = store.upload_idl(access, &program, &idl).await;
    uploaded.expect("uploads");
}

async fn text_of(store: &Store, access: &Access, program: u8) -> Option<String> {
    let read = store.uploaded_idl(access, &address(program)).await;
    read.expect("reads").map(|idl| idl.text)
}

async fn each_owner_has_its_own_idl_of_a_program(fixture: &Fixture) {
    let store = &fixture.store;
    let (one, _) = with_key(store, 1, "one").await;
    let (other, _) = with_key(store, 2, "other").await;
    let owners = [Access::All, Access::Key(one), Access::Key(other)];
    let before = store.idl_revision().await.expect("reads");
    upload(store, &owners[0], 7, "{\"a\":1}").await;
    upload(store, &owners[1], 7, "{\"a\":2}").await;
    upload(store, &owners[1], 7, "{\"a\":3}").await;
    assert!(before < store.idl_revision().await.expect("reads"));
    let texts = async |program| {
        [
            text_of(store, &owners[0], program).await,
            text_of(store, &owners[1], program).await,
            text_of(store, &owners[2], program).await,
        ]
    };
    let (first, last) = (Some("{\"a\":1}".to_owned()), Some("{\"a\":3}".to_owned()));
    assert_eq!(texts(7).await, [first, last.clone(), None]);
    assert_eq!(texts(8).await, [None, None, None]);
    assert_eq!(store.stored_idls().await.expect("reads").uploaded.len(), 2);

    let remove = async |owner: &Access| {
        let removed = store.remove_idl(owner, &address(7)).await;
        removed.expect("removes")
    };
    assert!(!remove(&owners[2]).await, "another's is not its own");
    assert!(remove(&owners[0]).await && !remove(&owners[0]).await);
    assert_eq!(texts(7).await, [None, last, None]);
    let unknown = Access::Key(ApiKeyId::from_random([9; 8]));
    let refused = store.upload_idl(&unknown, &address(7), &idl("{}")).await;
    assert!(matches!(refused, Err(StoreError::NoSuchApiKey { .. })));
}

async fn an_owner_has_no_more_than_is_held_in_memory(fixture: &Fixture) {
    let store = &fixture.store;
    let longest = "7".repeat(MAX_IDL_BYTES);
    let all = u8::try_from(MAX_OWNER_IDL_BYTES / MAX_IDL_BYTES as u64).expect("a few");
    for program in 0..all {
        upload(store, &Access::All, program, &longest).await;
    }
    upload(store, &Access::All, 0, &longest).await;
    let one_more = (address(all), idl("{}"));
    let refused = store
        .upload_idl(&Access::All, &one_more.0, &one_more.1)
        .await;
    let refused = refused.expect_err("is too much");
    assert!(matches!(refused, StoreError::IdlQuota { .. }), "{refused}");
    assert_eq!(text_of(store, &Access::All, all).await, None);
    let (key, _) = with_key(store, 1, "one").await;
    upload(store, &Access::Key(key), all, &longest).await;
}

async fn what_the_chain_has_is_kept_and_forgotten(fixture: &Fixture) {
    let store = &fixture.store;
    let program = address(7);
    assert_eq!(store.chain_idl(&program).await.expect("reads"), None);
    for text in [Some("{}".to_owned()), None, Some("{\"a\":1}".to_owned())] {
        let kept = ChainIdl { text, read: NOW };
        let keep = store.keep_chain_idl(&program, &kept).await;
        keep.expect("keeps");
        let read = store.chain_idl(&program).await.expect("reads");
        assert_eq!(read.as_ref(), Some(&kept));
        let all = fixture.another().await.stored_idls().await.expect("reads");
        let texts: Vec<_> = kept.text.into_iter().map(|text| (program, text)).collect();
        assert_eq!(all.chain, texts);
        let times = store.chain_idl_times().await.expect("reads");
        assert_eq!(times, [(program, NOW)]);
    }
    store.forget_chain_idl(&program).await.expect("forgets");
    assert_eq!(store.chain_idl(&program).await.expect("reads"), None);
}

async fn whoever_adopts_webhooks_has_their_idls(fixture: &Fixture) {
    let store = &fixture.store;
    let (to, _) = with_key(store, 1, "to").await;
    upload(store, &Access::All, 7, "{\"of\":\"all\"}").await;
    upload(store, &Access::All, 8, "{\"of\":\"all\"}").await;
    upload(store, &Access::Key(to.clone()), 8, "{\"of\":\"to\"}").await;
    let webhook = with_webhook(store, 1).await;
    let before = store.webhook_revision().await.expect("reads");
    store
        .adopt_webhooks(&Access::All, &to)
        .await
        .expect("moves");
    let to = Access::Key(to);
    let of = |name: &str| Some(format!("{{\"of\":\"{name}\"}}"));
    assert_eq!(text_of(store, &to, 7).await, of("all"));
    assert_eq!(text_of(store, &to, 8).await, of("to"));
    let changes = store.active_changes(before).await.expect("reads");
    let changed: Vec<_> = changes.changed.iter().map(|each| &each.id).collect();
    assert_eq!(changed, [&webhook], "indexers learn whose it is");
}
