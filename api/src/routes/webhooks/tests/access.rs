//! Tests of authentication: callers that are admitted, and the webhooks that they see.

use std::net::{SocketAddr, TcpListener, TcpStream};

use sluice_store::{
    ApiKeyId, ApiKeySecret, LeaseLimits, LeaseRequest, LeaseToken, NewApiKey, Quotas, Scope,
    Scopes, TenantShares,
};

use super::*;
use crate::client::{Here, Peer};

pub(super) struct Key {
    id: ApiKeyId,
    header: String,
}

impl Api {
    pub(super) async fn key(&self, number: u8) -> Key {
        self.scoped_key(number, Scopes::ALL).await
    }

    pub(super) async fn scoped_key(&self, number: u8, scopes: Scopes) -> Key {
        let secret = ApiKeySecret::from_random([number; 32]);
        let new = NewApiKey {
            id: ApiKeyId::from_random([number; 8]),
            name: format!("key {number}"),
            hash: secret.hash(),
            created: now(),
            expires: None,
            scopes,
        };
        self.store.create_api_key(&new).await.expect("stores");
        Key {
            id: new.id,
            header: format!("Bearer {}", secret.expose()),
        }
    }

    pub(super) async fn by(
        &self,
        key: &Key,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Response {
        self.with(method, path, body, &[("authorization", &key.header)])
            .await
    }
}

#[tokio::test]
async fn without_keys_only_this_machine_is_let_in() {
    let here = api(false).await;
    assert_eq!(here.post(&valid()).await.0, StatusCode::CREATED);
    for foreign in [
        ("host", "rebound.example.com"),
        ("x-forwarded-for", "192.0.2.1"),
    ] {
        let response = here
            .with(Method::GET, "/api/webhooks", None, &[foreign])
            .await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{foreign:?}");
    }
    let open = api_at(false, false).await;
    let (status, problem) = open.post(&valid()).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.contains("sluice keys add"), "{detail}");
}

#[tokio::test]
async fn without_keys_a_connection_that_is_not_of_our_user_is_not_let_in_whatever_it_says() {
    let api = api(false).await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let here = listener.local_addr().expect("an address");
    let caller = TcpStream::connect(here).expect("connects");
    let peer = caller.local_addr().expect("an address");
    let ask = async |peer: SocketAddr, here: Option<SocketAddr>| {
        // As a proxy names its upstream where it is told nothing else.
        let mut request = Request::get("/api/webhooks").header(header::HOST, "127.0.0.1:8787");
        request = request.extension(Peer(peer));
        if let Some(here) = here {
            request = request.extension(Here(here));
        }
        let request = request.body(Body::empty()).expect("a request");
        read(api.send(request).await).await
    };
    let (status, body) = ask(peer, Some(here)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], peer.port()));
    for (peer, here) in [(here, Some(here)), (elsewhere, Some(here)), (peer, None)] {
        let (status, problem) = ask(peer, here).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{peer} {here:?}");
        let detail = problem["detail"].as_str().expect("text");
        assert!(detail.contains("another user"), "{detail}");
        assert!(detail.contains("sluice keys add"), "{detail}");
    }
}

#[tokio::test]
async fn once_there_is_a_key_every_caller_needs_one() {
    let api = api(false).await;
    let key = api.key(1).await;
    let response = api.raw(Method::GET, "/api/webhooks", None).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let headers: HeaderMap = response.headers().clone();
    assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer realm=\"sluice\"");
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
    let (_, problem) = read(response).await;
    assert_eq!(problem["code"], "unauthorized");

    for bad in ["Bearer sluice_0000", "Bearer", "Basic YTpi"] {
        let response = api
            .with(
                Method::GET,
                "/api/webhooks",
                None,
                &[("authorization", bad)],
            )
            .await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{bad}");
        let challenge = &response.headers()[header::WWW_AUTHENTICATE];
        assert!(
            challenge.to_str().expect("text").contains("invalid_token"),
            "{bad}"
        );
    }
    let response = api.by(&key, Method::GET, "/api/webhooks", None).await;
    assert_eq!(response.status(), StatusCode::OK);

    api.store
        .revoke_api_key(key.id.as_str(), now())
        .await
        .expect("revokes");
    let response = api.by(&key, Method::GET, "/api/webhooks", None).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "at once");
    let response = api.raw(Method::GET, "/api/webhooks", None).await;
    let status = response.status();
    assert_eq!(
        status,
        StatusCode::UNAUTHORIZED,
        "the last key opens nothing"
    );
}

#[tokio::test]
async fn a_key_may_do_what_its_scopes_allow_and_is_told_which_it_lacks() {
    const PATH: &str = "/api/webhooks";
    let api = api(false).await;
    let reader = api.scoped_key(1, Scopes::only([Scope::WebhooksRead])).await;
    let writer = api
        .scoped_key(2, Scopes::only([Scope::WebhooksWrite]))
        .await;
    let neither = api.scoped_key(3, Scopes::only([])).await;
    let body = valid();
    for (key, method, body, lacks) in [
        (&reader, Method::GET, None, None),
        (&reader, Method::POST, Some(&body), Some("webhooks:write")),
        (&writer, Method::POST, Some(&body), None),
        (&writer, Method::GET, None, Some("webhooks:read")),
        (&neither, Method::GET, None, Some("webhooks:read")),
    ] {
        let (status, answer) = read(api.by(key, method, PATH, body).await).await;
        let Some(scope) = lacks else {
            assert!(status.is_success(), "{answer}");
            continue;
        };
        assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
        assert_eq!(answer["code"], "missing_scope");
        assert_eq!(answer["scope"], scope);
        let detail = answer["detail"].as_str().expect("text");
        assert!(detail.contains(&format!("--scope {scope}")), "{detail}");
    }
    let report = json!({ "id": "msg_1", "accepted": true, "durationMs": 1 });
    let stream = "/api/webhooks/wh_1/stream";
    let response = api.by(&reader, Method::POST, stream, Some(&report)).await;
    assert_eq!(
        response.status(),
        StatusCode::FORBIDDEN,
        "uncounted ones, too"
    );
}

#[tokio::test]
async fn to_another_key_a_webhook_does_not_exist() {
    let api = api(false).await;
    let (owner, other) = (api.key(1).await, api.key(2).await);
    let response = api
        .by(&owner, Method::POST, "/api/webhooks", Some(&valid()))
        .await;
    let path = response.headers()[header::LOCATION]
        .to_str()
        .expect("text")
        .to_owned();
    let nothing = json!({});
    let accounts = json!({ "accounts": [address(9)] });
    let programs = json!({ "programs": [address(9)] });
    let failed = json!({ "failed": true });
    let report = json!({ "id": "msg_1", "accepted": true, "durationMs": 1 });
    for (method, route, body) in [
        (Method::GET, "", None),
        (Method::PUT, "", Some(&valid())),
        (Method::PATCH, "", Some(&nothing)),
        (Method::DELETE, "", None),
        (Method::POST, "/test", None),
        (Method::POST, "/rotate-secret", None),
        (Method::POST, "/accounts", Some(&accounts)),
        (Method::DELETE, "/accounts", Some(&accounts)),
        (Method::POST, "/programs", Some(&programs)),
        (Method::DELETE, "/programs", Some(&programs)),
        (Method::GET, "/deliveries", None),
        (Method::POST, "/redeliver", Some(&failed)),
        (Method::GET, "/events", None),
        (Method::GET, "/messages/msg_1", None),
        (Method::GET, "/stream", None),
        (Method::POST, "/stream", Some(&report)),
    ] {
        let route = format!("{path}{route}");
        let response = api.by(&other, method.clone(), &route, body).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{method} {route}");
    }
    let (_, page) = read(api.by(&other, Method::GET, "/api/webhooks", None).await).await;
    assert_eq!(page["webhooks"], json!([]));
    let (status, webhook) = read(api.by(&owner, Method::GET, &path, None).await).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(webhook["status"]["version"], 1, "untouched");
}

#[tokio::test]
async fn a_key_that_asks_too_often_learns_when_to_return_and_others_are_not_slowed() {
    let api = api(false).await;
    let (busy, other) = (api.key(1).await, api.key(2).await);
    for _ in 0..BURST {
        let response = api.by(&busy, Method::GET, "/api/webhooks", None).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
    let response = api.by(&busy, Method::GET, "/api/webhooks", None).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = response.headers()[header::RETRY_AFTER]
        .to_str()
        .expect("text")
        .parse()
        .expect("seconds");
    assert!((1..=61).contains(&wait), "{wait}");
    let (_, problem) = read(response).await;
    assert_eq!(
        (&problem["code"], &problem["retryable"]),
        (&json!("rate_limited"), &json!(true))
    );
    let report = json!({ "id": "msg_1", "accepted": true, "durationMs": 1 });
    let response = api
        .by(
            &busy,
            Method::POST,
            "/api/webhooks/wh_1/stream",
            Some(&report),
        )
        .await;
    assert_eq!(
        response.status(),
        StatusCode::NOT_FOUND,
        "reports answer what the service sends, and are not counted"
    );
    let response = api.by(&other, Method::GET, "/api/webhooks", None).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_key_sees_its_quotas_and_is_refused_beyond_them() {
    let api = api(false).await;
    let key = api.key(1).await;
    let quotas = Quotas {
        webhooks: None,
        addresses: Some(5),
        stored_mib: Some(2),
        messages_per_second: Some(30),
        delivery_slots: Some(9),
    };
    assert!(api.store.set_quotas("key 1", quotas).await.expect("sets"));
    let body = valid();
    let create = async || {
        let response = api.by(&key, Method::POST, "/api/webhooks", Some(&body));
        read(response.await).await
    };
    assert_eq!(create().await.0, StatusCode::CREATED);
    let (status, problem) = create().await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    assert_eq!(problem["code"], "address_quota");
    let detail = problem["detail"].as_str().expect("text");
    assert!(
        detail.contains("6 addresses") && detail.contains("5 are"),
        "{detail}"
    );
    let (_, usage) = read(api.by(&key, Method::GET, "/api/usage", None).await).await;
    assert_eq!(
        usage,
        json!({
            "webhooks": { "used": 1, "limit": MAX_WEBHOOKS },
            "addresses": { "used": 3, "limit": 5 },
            "storedBytes": { "used": 0, "limit": 2 << 20 },
            "messagesPerSecond": { "used": 0, "limit": 30, "throttled": false },
            "deliverySlots": { "used": 0, "limit": 9 },
        })
    );
}

#[tokio::test]
async fn a_key_of_which_too_much_is_kept_is_refused_what_would_keep_more() {
    let api = api(false).await;
    let key = api.key(1).await;
    let body = valid();
    let create = async || {
        let response = api.by(&key, Method::POST, "/api/webhooks", Some(&body));
        read(response.await).await
    };
    let (status, created) = create().await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["webhook"]["id"].as_str().expect("text");
    let path = format!("/api/webhooks/{id}");
    let quotas = Quotas {
        stored_mib: Some(1),
        ..Quotas::default()
    };
    assert!(api.store.set_quotas("key 1", quotas).await.expect("sets"));
    let redeliver = json!({ "failed": true });
    let backfill = json!({ "fromSlot": 5, "toSlot": 6 });
    let rest = [("redeliver", &redeliver), ("backfill", &backfill)];
    api.message_of(&path, 1 << 20).await;
    let (status, problem) = create().await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    assert_eq!(problem["code"], "stored_quota");
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.contains("1048576 are allowed"), "{detail}");
    for (what, body) in rest {
        let path = format!("{path}/{what}");
        let response = api.by(&key, Method::POST, &path, Some(body)).await;
        let (_, problem) = read(response).await;
        assert_eq!(problem["code"], "stored_quota", "{what}: {problem}");
    }
    let lifted = api.store.set_quotas("key 1", Quotas::default()).await;
    assert!(lifted.expect("sets"));
    assert_eq!(create().await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_creation_that_is_repeated_is_answered_again_whatever_was_used_up_meanwhile() {
    let api = api(false).await;
    let (key, other) = (api.key(1).await, api.key(2).await);
    let create = async |key: &Key, body: &Value, name: &str| {
        let headers = [
            ("authorization", key.header.as_str()),
            ("idempotency-key", name),
        ];
        let response = api.with(Method::POST, "/api/webhooks", Some(body), &headers);
        read(response.await).await
    };
    let (status, first) = create(&key, &valid(), "order-1").await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let id = first["webhook"]["id"].as_str().expect("text");
    let mut changed = valid();
    changed["description"] = json!("another one");
    let used_up = async |code: &str| {
        let (status, again) = create(&key, &valid(), "order-1").await;
        assert_eq!(status, StatusCode::CREATED, "{code}: {again}");
        assert_eq!(again["secret"], first["secret"], "{code}");
        assert_eq!(again["webhook"]["id"], id, "{code}");
        let (_, problem) = create(&key, &changed, "order-1").await;
        assert_eq!(problem["code"], "idempotency_key_reused", "{code}");
        let (_, problem) = create(&key, &valid(), "order-2").await;
        assert_eq!(problem["code"], code, "{problem}");
    };
    let quotas = Quotas {
        webhooks: Some(1),
        ..Quotas::default()
    };
    assert!(api.store.set_quotas("key 1", quotas).await.expect("sets"));
    used_up("too_many_webhooks").await;
    let served = AddressLimits {
        accounts: Some(1),
        ..AddressLimits::default()
    };
    let recorded = api.store.record_address_limits(served).await;
    recorded.expect("written");
    used_up("filter_not_served").await;
    let quotas = Quotas {
        stored_mib: Some(1),
        ..Quotas::default()
    };
    assert!(api.store.set_quotas("key 1", quotas).await.expect("sets"));
    api.message_of(&format!("/api/webhooks/{id}"), 1 << 20)
        .await;
    used_up("stored_quota").await;
    let (_, problem) = create(&other, &valid(), "order-1").await;
    assert_eq!(problem["code"], "filter_not_served", "of another owner");
}

#[tokio::test]
async fn a_key_whose_rate_holds_messages_back_is_refused_what_would_send_more() {
    let api = api(false).await;
    let key = api.key(1).await;
    let body = valid();
    let create = async || {
        let response = api.by(&key, Method::POST, "/api/webhooks", Some(&body));
        read(response.await).await
    };
    let (status, created) = create().await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["webhook"]["id"].as_str().expect("text");
    let path = format!("/api/webhooks/{id}");
    let quotas = Quotas {
        messages_per_second: Some(2),
        ..Quotas::default()
    };
    assert!(api.store.set_quotas("key 1", quotas).await.expect("sets"));
    api.messages(&path, 3).await;
    let redeliver = json!({ "failed": true });
    let backfill = json!({ "fromSlot": 5, "toSlot": 6 });
    let ask = async |what: &str, body: &Value| {
        let path = format!("{path}/{what}");
        api.by(&key, Method::POST, &path, Some(body)).await
    };
    let response = ask("redeliver", &redeliver).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED, "nothing waits yet");

    assert_eq!(leased(&api.store, now()).await, 2);
    for (what, body) in [("redeliver", &redeliver), ("backfill", &backfill)] {
        let response = ask(what, body).await;
        let wait = response.headers().get(header::RETRY_AFTER).cloned();
        let (status, problem) = read(response).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{what}: {problem}");
        assert_eq!(
            (&problem["code"], &problem["retryable"]),
            (&json!("message_rate"), &json!(true))
        );
        let wait = wait.expect("Retry-After");
        let wait: u64 = wait.to_str().expect("text").parse().expect("seconds");
        assert!((1..=10).contains(&wait), "{wait}");
        let detail = problem["detail"].as_str().expect("text");
        assert!(detail.starts_with("2 messages a second"), "{detail}");
        assert!(detail.contains("held back"), "{detail}");
    }
    assert_eq!(create().await.0, StatusCode::CREATED, "that sends nothing");
    let later = now().after(Duration::from_secs(2));
    assert_eq!(leased(&api.store, later).await, 1, "nothing was lost");

    let lifted = api.store.set_quotas("key 1", Quotas::default()).await;
    assert!(lifted.expect("sets"));
    for (what, body) in [("redeliver", &redeliver), ("backfill", &backfill)] {
        let status = ask(what, body).await.status();
        assert_eq!(status, StatusCode::ACCEPTED, "{what}");
    }
}

/// How many messages an indexer gets to send at a time.
async fn leased(store: &Store, at: Timestamp) -> usize {
    let request = LeaseRequest {
        now: at,
        until: at.after(Duration::from_secs(25)),
        token: LeaseToken::from_random(rand::random()),
        limits: LeaseLimits::deliveries(100),
        shares: TenantShares::unlimited(),
    };
    store.lease_due(&request).await.expect("leases").len()
}
