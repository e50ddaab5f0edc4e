//! A user of the published client: asks a service for a quote, and verifies a webhook. Both are played, on this machine.

use std::{
    error::Error,
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::SystemTime,
};

use http::HeaderMap;
use sluice_client::{
    Client,
    webhooks::{self, Verified},
    wire::GetQuoteQuery,
};
use standardwebhooks::Webhook;

/// What the service's own document gives as the answer to a request for a quote.
const ANSWER: &str = include_str!("answer.json");

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const BODY: &str = r#"{"type":"heartbeat","timestamp":"2026-11-23T00:00:00Z","webhookId":"wh_1","sequence":1,"slot":2,"commitment":"confirmed","data":{"lastSlot":2,"lastSequence":1,"filter":{"digest":"d","accounts":1,"programs":0}}}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new(&service()?)?;
    let query = GetQuoteQuery {
        amount: u64::MAX,
        ..GetQuoteQuery::default()
    };
    let answer = client.get_quote(&query).await?;
    println!("quoted {}", answer.quote.out_amount);

    let headers = signed()?;
    let delivery = webhooks::verify(BODY.as_bytes(), &headers, &[SECRET])?;
    println!("verified {}", delivery.id);
    let altered = BODY.replace("confirmed", "finalized");
    match webhooks::verify(altered.as_bytes(), &headers, &[SECRET]) {
        Ok(_) => println!("verified what was altered"),
        Err(_) => println!("refused what was altered"),
    }
    Ok(())
}

/// A service that answers once.
fn service() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || -> std::io::Result<()> {
        let (mut connection, _) = listener.accept()?;
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte)?;
            request.extend(byte);
        }
        let length = ANSWER.len();
        write!(
            connection,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{ANSWER}"
        )
    });
    Ok(url)
}

/// The headers of a delivery of now.
fn signed() -> Result<HeaderMap, Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let now = i64::try_from(now.as_secs())?;
    let signature = Webhook::new(SECRET)?.sign("msg_1", now, BODY.as_bytes())?;
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "msg_1".parse()?);
    headers.insert("webhook-timestamp", now.to_string().parse()?);
    headers.insert("webhook-signature", signature.parse()?);
    Ok(headers)
}

/// A handler of axum, which compiles only where the extractor is one.
#[expect(dead_code, reason = "its type is what is tried")]
async fn handle(Verified(delivery): Verified) -> String {
    delivery.id
}
