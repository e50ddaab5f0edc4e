//! Tests of the console's pages: what they load, what they name, who may see them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    num::NonZeroU32,
};

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use sluice_store::{ApiKeyHash, ApiKeyId, NewApiKey, Scopes, Store, Timestamp};
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;
use crate::{
    auth::{CSRF_TOKEN, CallerLimiter, RateLimit},
    client::{Here, Peer},
};

const KEY: &str = "sluice_a_key_of_the_tests";

struct Site {
    router: Router,
    store: Store,
    _folder: TempDir,
}

impl Site {
    async fn new(keyless: bool) -> Self {
        Self::with_wallet(keyless, None).await
    }

    async fn with_wallet(keyless: bool, wallet: Option<DemoWallet>) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sluice.db");
        let store = Store::open(&path).await.expect("opens");
        let limit = RateLimit {
            per_minute: NonZeroU32::MAX,
            burst: NonZeroU32::MAX,
        };
        let limiter = CallerLimiter::new(limit);
        let authenticator = Authenticator::new(store.clone(), limiter, keyless);
        Self {
            router: routes(authenticator, Metrics::default(), Market::default(), wallet),
            store,
            _folder: folder,
        }
    }

    async fn with_key() -> Self {
        let site = Self::new(false).await;
        let key = NewApiKey {
            id: ApiKeyId::from_random([1; 8]),
            name: "tests".to_owned(),
            hash: ApiKeyHash::of(KEY),
            created: Timestamp::from(std::time::SystemTime::UNIX_EPOCH),
            expires: None,
            scopes: Scopes::ALL,
        };
        site.store.create_api_key(&key).await.expect("stores");
        site
    }

    async fn send(&self, request: Request<Body>) -> Response {
        let answer = self.router.clone().oneshot(request).await;
        answer.expect("infallible")
    }

    async fn get(&self, path: &str, cookie: Option<&str>) -> Response {
        let mut request = Request::get(path);
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        self.send(request.body(Body::empty()).expect("a request"))
            .await
    }

    async fn sign_in(&self, key: &str) -> Response {
        let request = Request::post(SIGN_IN).body(Body::from(format!("key={key}")));
        self.send(request.expect("a request")).await
    }

    /// The cookie of a session.
    async fn cookie(&self) -> String {
        let answer = self.sign_in(KEY).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()[LOCATION], "/console");
        let cookie = answer.headers()[SET_COOKIE].to_str().expect("a text");
        for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        cookie.split(';').next().expect("a pair").to_owned()
    }
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

/// The values of an attribute in a page.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let begins = format!(" {attribute}=\"");
    let rests: Vec<_> = html.split(begins.as_str()).skip(1).collect();
    rests
        .into_iter()
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

/// Fails unless an answer's policy allows what this server answers, and nothing that is written into the page, evaluated from a text
/// or of another host.
fn assert_loads_nothing_foreign(response: &Response, path: &str) {
    let policies = response.headers().get_all("content-security-policy");
    let mut policies = policies.iter().map(|policy| policy.to_str().expect("text"));
    let policy = policies.next().expect("a policy");
    assert_eq!(policies.next(), None, "{path}");
    let directives = policy.split(';').map(str::trim);
    let directives: Vec<_> = directives.filter_map(|one| one.split_once(' ')).collect();
    assert_eq!(
        directives.first(),
        Some(&("default-src", "'self'")),
        "{path}"
    );
    // They have no part in what the default is for, and without them all is allowed.
    for (name, sources) in [
        ("base-uri", "'none'"),
        ("form-action", "'self'"),
        ("frame-ancestors", "'none'"),
    ] {
        assert!(directives.contains(&(name, sources)), "{path}: {policy}");
    }
    for (name, sources) in directives {
        for source in sources.split(' ') {
            assert!(
                ["'self'", "'none'"].contains(&source),
                "{path}: {name} {source}"
            );
        }
    }
}

#[tokio::test]
async fn every_page_loads_from_this_server_alone_and_names_its_inputs() {
    let site = Site::new(true).await;
    let paths = PAGES.iter().map(|page| page.path).chain([SIGN_IN]);
    for path in paths {
        let response = site.get(path, None).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let headers = response.headers();
        assert_eq!(headers[CACHE_CONTROL], "no-store", "{path}");
        assert_loads_nothing_foreign(&response, path);
        let html = text(response).await;
        for forbidden in ["://", " style=", " onclick=", "<style", "{main}", "{title}"] {
            let place = html.replace("placeholder=\"https://example.com/hook\"", "");
            assert!(!place.contains(forbidden), "{path}: {forbidden}");
        }
        for script in html.split("<script").skip(1) {
            assert!(script.contains(" src=\"/"), "{path}: a script in the page");
        }
        for loaded in values(&html, "src") {
            let loaded = site.get(loaded, None).await;
            assert_eq!(loaded.status(), StatusCode::OK, "{path}");
            assert_loads_nothing_foreign(&loaded, path);
        }
        let ids: Vec<_> = values(&html, "id");
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "{path}: {ids:?}");
        let labelled = values(&html, "for");
        for tag in ["<input ", "<select ", "<textarea "] {
            for rest in html.split(tag).skip(1) {
                let rest = rest.split('>').next().expect("an end");
                let input = format!("{tag}{rest}");
                let id = values(&input, "id");
                let inside = rest.contains("type=\"checkbox\"") || rest.contains("hidden");
                let named = id.first().is_some_and(|id| labelled.contains(id));
                assert!(inside || named, "{path}: {tag}{rest} has no label");
            }
        }
    }
}

#[test]
fn no_script_names_another_host_or_reads_text_as_html() {
    for (name, text) in assets::all() {
        let own = text.replace("http://www.w3.org/2000/svg", "");
        for forbidden in [
            "://",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
        ] {
            assert!(!own.contains(forbidden), "{name}: {forbidden}");
        }
    }
}

/// Most bytes of a page's scripts, with what they import and as they are sent: a third of a second where a telephone has 1 Mbit/s.
/// A page that needs more should show less; a framework alone would be more.
const MOST_OF_A_PAGE: usize = 40_000;

/// Most bytes of the scripts of all pages, which every binary carries: some 2,000 lines, which one person can still read in a sitting,
/// as nobody reads what a framework brings.
const MOST_OF_ALL: usize = 110_000;

/// A script and those that it imports, by their names, with their texts.
fn with_imports(script: &str) -> BTreeMap<&str, &'static str> {
    let (_, text) = assets::find(script).expect("a script");
    let imported = text.split("from './").skip(1);
    let imported = imported.filter_map(|rest| rest.split('\'').next());
    let mut all = BTreeMap::from([(script, text)]);
    all.extend(imported.flat_map(with_imports));
    all
}

#[test]
fn the_scripts_of_a_page_and_of_all_pages_stay_small() {
    for page in &PAGES {
        let mut scripts = with_imports(page.script);
        scripts.extend(with_imports("page.js"));
        let bytes: usize = scripts.values().map(|text| text.len()).sum();
        assert!(bytes <= MOST_OF_A_PAGE, "{}: {bytes} bytes", page.path);
    }
    let scripts = assets::all().filter(|(name, _)| name.ends_with(".js"));
    let bytes: usize = scripts.map(|(_, text)| text.len()).sum();
    assert!(bytes <= MOST_OF_ALL, "{bytes} bytes");
}

#[test]
fn every_place_that_a_script_fills_is_in_its_page() {
    for page in &PAGES {
        let layout = include_str!("layout.html");
        for script in with_imports(page.script).into_values() {
            for rest in script.split("byId('").skip(1) {
                let id = rest.split('\'').next().expect("an end");
                let place = format!(" id=\"{id}\"");
                assert!(
                    page.main.contains(&place) || layout.contains(&place),
                    "{}: {id}",
                    page.script
                );
            }
        }
    }
}

#[tokio::test]
async fn a_key_opens_a_session_and_signing_out_ends_it() {
    let site = Site::with_key().await;
    for page in &PAGES {
        let sent = site.get(page.path, None).await;
        assert_eq!(sent.status(), StatusCode::SEE_OTHER);
        assert_eq!(sent.headers()[LOCATION], SIGN_IN);
    }
    assert_eq!(site.get("/console/metrics", None).await.status(), 401);
    let refused = site.sign_in("sluice_another").await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(!refused.headers().contains_key(SET_COOKIE));

    let cookie = site.cookie().await;
    let page = text(site.get("/console", Some(&cookie)).await).await;
    let token = values(&page, "content").pop().expect("a token").to_owned();
    assert_eq!(token.len(), 64, "{page}");
    let metrics = site.get("/console/metrics", Some(&cookie)).await;
    assert!(text(metrics).await.contains("sluice_api_"));

    let sign_out = async |token: &str| {
        let request = Request::post("/console/sign-out").header("cookie", &cookie);
        let request = request.body(Body::from(format!("token={token}")));
        site.send(request.expect("a request")).await
    };
    sign_out("forged").await;
    assert_eq!(site.get("/console", Some(&cookie)).await.status(), 200);
    sign_out(&token).await;
    assert_eq!(site.get("/console", Some(&cookie)).await.status(), 303);
}

#[tokio::test]
async fn the_demo_wallet_is_shown_on_this_machine_and_only_where_one_is_set() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("wallet.json");
    let bytes = serde_json::to_string(&[7_u8; 64].to_vec()).expect("JSON");
    std::fs::write(&path, bytes).expect("writable");
    let wallet = DemoWallet::read(&path).expect("a key pair");
    let asked = "/console/demo-wallet";

    let site = Site::with_wallet(true, Some(wallet)).await;
    let page = text(site.get("/console/swap", None).await).await;
    assert!(page.contains("name=\"demo-wallet\" content=\"yes\""));
    assert!(page.contains("name=\"chain\" content=\"solana:localnet\""));
    let shown = site.get(asked, None).await;
    assert_eq!(shown.status(), StatusCode::OK);
    assert_eq!(shown.headers()[CACHE_CONTROL], "no-store");
    assert!(text(shown).await.contains(&"07".repeat(32)));
    // A page that has bound a foreign name to this address, and what a proxy passes on.
    for (name, value) in [
        ("host", "rebound.example.com"),
        ("x-forwarded-for", "9.9.9.9"),
    ] {
        let request = Request::get(asked).header(name, value).body(Body::empty());
        let answer = site.send(request.expect("a request")).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
    }
    // What comes by a connection that is not of our user, as from a proxy.
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let request = Request::get(asked).extension(Peer(nobody));
    let request = request.extension(Here(nobody)).body(Body::empty());
    let answer = site.send(request.expect("a request")).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);

    let without = Site::new(true).await;
    let page = text(without.get("/console/swap", None).await).await;
    assert!(page.contains("name=\"demo-wallet\" content=\"\""));
    assert!(page.contains("name=\"chain\" content=\"solana:mainnet\""));
    assert_eq!(
        without.get(asked, None).await.status(),
        StatusCode::NOT_FOUND
    );
    let closed = Site::with_key().await;
    assert_eq!(
        closed.get(asked, None).await.status(),
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn browsers_find_the_icon_where_they_look_for_it() {
    let site = Site::new(true).await;
    for path in ["/favicon.ico", "/console/assets/icon.svg"] {
        let icon = site.get(path, None).await;
        assert_eq!(icon.status(), StatusCode::OK);
        assert_eq!(icon.headers()["content-type"], "image/svg+xml");
    }
}

#[tokio::test]
async fn a_session_changes_nothing_without_its_token() {
    let site = Site::with_key().await;
    let limiter = CallerLimiter::new(RateLimit {
        per_minute: NonZeroU32::MAX,
        burst: NonZeroU32::MAX,
    });
    let authenticator = Authenticator::new(site.store.clone(), limiter, false);
    let name = authenticator.sign_in(KEY, [[1; 32], [2; 32]]).await;
    let name = name.expect("the store answers").expect("a session");
    let guarded = Router::new()
        .route("/", get(async || "read").post(async || "changed"))
        .layer(axum::middleware::from_fn_with_state(
            authenticator,
            crate::auth::authenticate,
        ));
    let send = async |method: &str, token: Option<&str>| {
        let mut request = Request::builder().method(method).uri("/");
        request = request.header("cookie", format!("{SESSION_COOKIE}={name}"));
        if let Some(token) = token {
            request = request.header(CSRF_TOKEN, token);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = guarded.clone().oneshot(request).await;
        answer.expect("infallible").status().as_u16()
    };
    assert_eq!(send("GET", None).await, 200);
    assert_eq!(send("POST", None).await, 401);
    assert_eq!(send("POST", Some("forged")).await, 401);
    assert_eq!(send("POST", Some(&"02".repeat(32))).await, 200);
    // A revoked key ends its sessions.
    let now = Timestamp::from(std::time::SystemTime::UNIX_EPOCH);
    let revoked = site.store.revoke_api_key("tests", now).await;
    assert!(revoked.is_ok_and(|revoked| revoked.is_some()));
    assert_eq!(send("GET", None).await, 401);
}
