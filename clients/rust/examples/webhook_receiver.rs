//! Receives verified webhooks and prints them: `WEBHOOK_SECRET=whsec_... webhook_receiver 127.0.0.1:3000`.
//!
//! In place of the secret the webhook's public key may stand, where it signs by `v1a`.

use std::{env, error::Error};

use axum::{Router, http::StatusCode, routing::post};
use sluice_client::webhooks::{Content, Secrets, Verified};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args()
        .nth(1)
        .ok_or("usage: webhook_receiver ADDRESS")?;
    let secrets = Secrets::new([env::var("WEBHOOK_SECRET")?]);
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let router = Router::new().route("/", post(receive)).with_state(secrets);
    Ok(axum::serve(listener, router).await?)
}

/// Called with what was verified, and with nothing else.
async fn receive(Verified(delivery): Verified) -> StatusCode {
    for message in &delivery.messages {
        let what = match &message.content {
            Content::ProgramEvent(event) => {
                let name = event.name.as_deref().unwrap_or("an event");
                format!("{name} in {}", event.signature)
            }
            Content::AccountChange(change) => change.pubkey.clone(),
            other => format!("{other:?}"),
        };
        println!("{} at slot {}: {what}", message.sequence, message.slot);
    }
    StatusCode::NO_CONTENT
}
