//! Console: pages for people over the routes of the API, behind a session that an API key opens.
//!
//! A page is its frame and places to fill: its script asks the same routes as any client, so the console can do nothing that
//! they do not allow. Nothing of a request is put into a page but a fault from a fixed list.

mod assets;
mod demo_wallet;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, LOCATION, SET_COOKIE},
    },
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cpmm::ExchangeIds;
use sluice_market::Market;
use url::form_urlencoded;

pub use self::demo_wallet::DemoWallet;

use crate::{
    auth::{Authenticator, SESSION_COOKIE, Session},
    client::Source,
    error::ApiError,
    metrics::{self, Metrics},
    pages,
};

/// What a page of the console may load: what this server answers, and nothing written into the page itself.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Where one signs in.
const SIGN_IN: &str = "/console/sign-in";

/// A page that needs a session where the webhook routes need a key.
struct Page {
    path: &'static str,
    title: &'static str,
    main: &'static str,
    script: &'static str,
}

/// The pages, in the order of the navigation.
const PAGES: [Page; 7] = [
    Page {
        path: "/console",
        title: "Overview",
        main: include_str!("console/overview.html"),
        script: "overview.js",
    },
    Page {
        path: "/console/pools",
        title: "Pools",
        main: include_str!("console/pools.html"),
        script: "pools.js",
    },
    Page {
        path: "/console/swap",
        title: "Swap",
        main: include_str!("console/swap.html"),
        script: "swap.js",
    },
    Page {
        path: "/console/explain",
        title: "Explain",
        main: include_str!("console/explain.html"),
        script: "explain.js",
    },
    Page {
        path: "/console/webhooks",
        title: "Webhooks",
        main: include_str!("console/webhooks.html"),
        script: "webhooks.js",
    },
    Page {
        path: "/console/keys",
        title: "Keys",
        main: include_str!("console/keys.html"),
        script: "keys.js",
    },
    Page {
        path: "/console/usage",
        title: "Usage and dead letters",
        main: include_str!("console/usage.html"),
        script: "usage.js",
    },
];

/// What the pages need.
#[derive(Clone)]
struct Console {
    authenticator: Authenticator,
    metrics: Metrics,
    market: Market,
    demo_wallet: Option<DemoWallet>,
}

/// The routes of the console; its pages sign with the demo wallet where there is one.
pub fn routes(
    authenticator: Authenticator,
    metrics: Metrics,
    market: Market,
    demo_wallet: Option<DemoWallet>,
) -> Router {
    let mut router = Router::new();
    for page in &PAGES {
        let show = async |State(console): State<Console>, source: Source, headers: HeaderMap| {
            console.show(page, &headers, source).await
        };
        router = router.route(page.path, get(show));
    }
    router
        .route(SIGN_IN, get(async || sign_in_page("")).post(sign_in))
        .route("/console/sign-out", post(sign_out))
        .route("/console/metrics", get(show_metrics))
        .route("/console/demo-wallet", get(show_demo_wallet))
        .route("/console/assets/{name}", get(asset))
        // Browsers ask for it by themselves where a page names none, as the reference.
        .route(
            "/favicon.ico",
            get(async || asset(Path(assets::ICON.to_owned())).await),
        )
        .with_state(Console {
            authenticator,
            metrics,
            market,
            demo_wallet,
        })
}

impl Console {
    /// The cluster, as wallets call it: there is a demo wallet on a localnet alone, and devnet has an exchange of its own.
    fn chain(&self) -> &'static str {
        if self.demo_wallet.is_some() {
            "solana:localnet"
        } else if self.market.exchange() == ExchangeIds::DEVNET {
            "solana:devnet"
        } else {
            "solana:mainnet"
        }
    }

    async fn show(&self, page: &Page, headers: &HeaderMap, source: Source) -> Response {
        match self.authenticator.page_session(headers, source).await {
            Ok(session) => {
                let frame = Frame {
                    title: page.title,
                    main: page.main,
                    script: page.script,
                    has_demo_wallet: self.demo_wallet.is_some(),
                    chain: self.chain(),
                };
                html(StatusCode::OK, &frame, session)
            }
            Err(ApiError::Unauthorized { .. }) => to(SIGN_IN),
            Err(error) => error.into_response(),
        }
    }
}

/// The demo wallet, for who may see the console, and to programs of this process's user alone.
async fn show_demo_wallet(
    State(console): State<Console>,
    source: Source,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let session = console.authenticator.page_session(&headers, source);
    session.await?;
    let wallet = console.demo_wallet.ok_or(ApiError::NoRoute)?;
    if !source.is_ours().await {
        return Err(ApiError::NoRoute);
    }
    let kept = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((kept, Json(wallet.shown())).into_response())
}

/// The metrics, for who may see the console.
async fn show_metrics(
    State(console): State<Console>,
    source: Source,
    headers: HeaderMap,
) -> Response {
    match console.authenticator.page_session(&headers, source).await {
        Ok(_) => metrics::answer(&console.metrics, &console.market),
        Err(error) => error.into_response(),
    }
}

async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    let (media_type, text) = assets::find(&name).ok_or(ApiError::NoRoute)?;
    Ok(pages::page(media_type, POLICY, text))
}

fn sign_in_page(fault: &'static str) -> Response {
    let status = if fault.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNAUTHORIZED
    };
    let main = include_str!("console/sign_in.html").replace("{fault}", fault);
    let page = Frame {
        title: "Sign in",
        main: &main,
        script: "",
        has_demo_wallet: false,
        chain: "",
    };
    html(status, &page, None)
}

/// Opens a session for the key of a form.
async fn sign_in(State(console): State<Console>, headers: HeaderMap, body: Bytes) -> Response {
    let key = field(&body, "key");
    let opened = console.authenticator.sign_in(key.trim(), rand::random());
    match opened.await {
        Ok(Some(name)) => {
            let secure = if by_tls(&headers) { "; Secure" } else { "" };
            let cookie =
                format!("{SESSION_COOKIE}={name}; Path=/; HttpOnly; SameSite=Strict{secure}");
            with_cookie(to("/console"), &cookie)
        }
        Ok(None) => sign_in_page("There is no such key, or it was revoked or has expired."),
        Err(error) => error.into_response(),
    }
}

/// Ends the session whose token the form brings.
async fn sign_out(State(console): State<Console>, headers: HeaderMap, body: Bytes) -> Response {
    let token = field(&body, "token");
    console.authenticator.sign_out(&headers, &token);
    let gone = format!("{SESSION_COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    with_cookie(to(SIGN_IN), &gone)
}

/// A field of a form; empty where there is none.
fn field(form: &[u8], name: &str) -> String {
    let mut pairs = form_urlencoded::parse(form);
    let found = pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()));
    found.unwrap_or_default()
}

/// Whether a proxy says that the request came to it encrypted; the cookie then stays on such connections.
fn by_tls(headers: &HeaderMap) -> bool {
    let scheme = headers.get("x-forwarded-proto");
    scheme.is_some_and(|scheme| scheme.as_bytes() == b"https")
}

/// What is put into the layout.
struct Frame<'a> {
    title: &'static str,
    main: &'a str,
    script: &'static str,
    has_demo_wallet: bool,
    /// The cluster, as wallets call it.
    chain: &'static str,
}

/// A whole page. All that is put in is the console's own but the session's token, which is hexadecimal.
fn html(status: StatusCode, frame: &Frame<'_>, session: Option<Session>) -> Response {
    let token = session.map(|session| session.csrf_token);
    let sign_out = token.as_ref().map_or(String::new(), |token| {
        format!(
            "<form method=\"post\" action=\"/console/sign-out\">\
             <input type=\"hidden\" name=\"token\" value=\"{token}\"><button>Sign out</button></form>"
        )
    });
    let script = match frame.script {
        "" => String::new(),
        name => format!("<script type=\"module\" src=\"/console/assets/{name}\"></script>"),
    };
    let text = include_str!("console/layout.html")
        .replace("{title}", frame.title)
        .replace("{csrf}", token.as_deref().unwrap_or_default())
        .replace(
            "{demo_wallet}",
            if frame.has_demo_wallet { "yes" } else { "" },
        )
        .replace("{chain}", frame.chain)
        .replace("{script}", &script)
        .replace("{sign_out}", &sign_out)
        .replace("{main}", frame.main);
    let mut response = pages::page("text/html; charset=utf-8", POLICY, text);
    *response.status_mut() = status;
    // It holds the session's token.
    let kept = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, kept);
    response
}

/// Sends the browser to another page, which it asks for with `GET`.
fn to(path: &'static str) -> Response {
    let location = [(LOCATION, HeaderValue::from_static(path))];
    (StatusCode::SEE_OTHER, location).into_response()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    match HeaderValue::from_str(cookie) {
        Ok(cookie) => {
            response.headers_mut().insert(SET_COOKIE, cookie);
            response
        }
        Err(error) => ApiError::Internal(error.into()).into_response(),
    }
}

#[cfg(test)]
mod tests;
