//! Servers and networks that fail.

use std::time::Duration;

use sluice_geyser::scripted::Code;
use sluice_testkit::{free_port::free_address, network_link::NetworkLink, scripted_chain::Message};
use tokio::time::sleep;

use super::{Scenario, unbroken};

/// The stream ends in this way; the market says so, as long as it finds no other, and resumes.
async fn survives(end: impl FnOnce(&Scenario)) {
    let mut scenario = Scenario::ready().await;
    scenario.pass();
    scenario.agree().await;
    scenario.link.refuse(true);
    end(&scenario);
    assert!(!scenario.not_ready().await.is_empty());
    scenario.link.refuse(false);
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_too_slow_for_the_servers_ring_comes_back() {
    survives(|scenario| scenario.fail(Code::Internal, "lagged to receive geyser messages")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_too_slow_for_the_servers_queue_comes_back() {
    survives(|scenario| scenario.fail(Code::Internal, "lagged to send an update")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_closed_without_a_word_is_opened_again() {
    survives(Scenario::close).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_connection_is_opened_again() {
    survives(|scenario| scenario.link.cut()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_content_ends_the_stream_and_nothing_else() {
    survives(|scenario| scenario.chain.report(Message::Garbage)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_above_every_limit_ends_the_stream_and_nothing_else() {
    let too_large = sluice_geyser::limits::MAX_MESSAGE_BYTES + 1;
    survives(move |scenario| scenario.chain.report(Message::Oversized(too_large))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_error_of_the_server_is_survived() {
    survives(|scenario| scenario.fail(Code::Unknown, "h2 protocol error: http2 error")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_subscription_is_tried_again() {
    let mut scenario = Scenario::ready().await;
    scenario
        .server
        .refuse_next(Code::Unauthenticated, "no valid token");
    scenario.close();
    scenario.subscribed(3).await;
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_refused_at_the_very_start_is_tried_again() {
    let mut scenario = Scenario::prepared(async |_, server| {
        server.refuse_next(Code::ResourceExhausted, "too many subscriptions");
        Vec::new()
    })
    .await;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_for_a_while_is_found_again() {
    let mut scenario = Scenario::ready().await;
    scenario.link.refuse(true);
    scenario.link.cut();
    assert!(!scenario.not_ready().await.is_empty());
    for _ in 0..20 {
        let slot = scenario.pass();
        scenario.confirm(slot);
    }
    sleep(Duration::from_millis(400)).await;
    assert!(
        scenario.reader().not_ready().is_some(),
        "nothing was reported to it"
    );
    scenario.link.refuse(false);
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_without_a_stream_serves_no_view() {
    let scenario = Scenario::ready().await;
    scenario.link.refuse(true);
    scenario.link.cut();
    assert!(!scenario.not_ready().await.is_empty());
    let reader = scenario.reader();
    use sluice_simulations::faults::observed::Level;
    assert_eq!(reader.moment(Level::Processed), None);
    assert_eq!(reader.moment(Level::Confirmed), None);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_and_leave_the_subscription_as_it_is() {
    let mut scenario = Scenario::ready().await;
    for _ in 0..3 {
        scenario.chain.report(Message::Ping);
        scenario.pass();
    }
    scenario.agree().await;
    while scenario.server.pongs() < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_only_pings_makes_the_market_say_so() {
    let mut scenario = Scenario::ready().await;
    let record = scenario.chain.clone();
    let pinging = tokio::spawn(async move {
        loop {
            record.report(Message::Ping);
            sleep(Duration::from_millis(500)).await;
        }
    });
    let reason = scenario.not_ready().await;
    assert!(reason.contains("slot"), "{reason}");
    // The slots come after all.
    scenario.pass_until_agreed().await;
    pinging.abort();
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_nothing_moves_is_given_up() {
    let mut scenario = Scenario::ready().await;
    scenario.link.freeze(true);
    scenario.pass();
    assert!(!scenario.not_ready().await.is_empty());
    scenario.link.freeze(false);
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_server_is_used_when_the_first_cannot_be_reached() {
    let mut scenario = Scenario::prepared(async |_, _| {
        let address = free_address().expect("a free port");
        vec![format!("http://{address}")]
    })
    .await;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_server_takes_over_when_the_first_dies() {
    let mut first = None;
    let mut scenario = Scenario::prepared(async |_, server| {
        let line = NetworkLink::to(server.address())
            .await
            .expect("a free port");
        let url = line.url();
        first = Some(line);
        vec![url]
    })
    .await;
    scenario.pass_until_agreed().await;
    let first = first.expect("it was set up");
    first.refuse(true);
    first.cut();
    scenario.pass();
    scenario.pass_until_agreed().await;
    assert!(scenario.server.requests().len() >= 2);
    scenario.end().await;
}
