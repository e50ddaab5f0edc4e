//! Servers and networks that fail.

use std::time::Duration;

use sluice_geyser::scripted::Code;
use sluice_testkit::{line::Line, world::Message};
use tokio::{net::TcpListener, time::sleep};

use super::{Scene, unbroken};

/// The stream ends in this way; the market says so, and resumes.
async fn survives(end: impl FnOnce(&Scene)) {
    let mut scene = Scene::ready().await;
    scene.pass();
    scene.agree().await;
    end(&scene);
    assert!(!scene.not_ready().await.is_empty());
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_too_slow_for_the_servers_ring_comes_back() {
    survives(|scene| scene.fail(Code::Internal, "lagged to receive geyser messages")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_too_slow_for_the_servers_queue_comes_back() {
    survives(|scene| scene.fail(Code::Internal, "lagged to send an update")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_closed_without_a_word_is_opened_again() {
    survives(Scene::close).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_connection_is_opened_again() {
    survives(|scene| scene.line.cut()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_content_ends_the_stream_and_nothing_else() {
    survives(|scene| scene.world.tell(Message::Garbage)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_above_every_limit_ends_the_stream_and_nothing_else() {
    let too_large = sluice_geyser::limits::MAX_MESSAGE_BYTES + 1;
    survives(move |scene| scene.world.tell(Message::Oversized(too_large))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_error_of_the_server_is_survived() {
    survives(|scene| scene.fail(Code::Unknown, "h2 protocol error: http2 error")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_subscription_is_tried_again() {
    let mut scene = Scene::ready().await;
    scene
        .server
        .refuse_next(Code::Unauthenticated, "no valid token");
    scene.close();
    scene.subscribed(3).await;
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_refused_at_the_very_start_is_tried_again() {
    let mut scene = Scene::staged(async |_, server| {
        server.refuse_next(Code::ResourceExhausted, "too many subscriptions");
        Vec::new()
    })
    .await;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_for_a_while_is_found_again() {
    let mut scene = Scene::ready().await;
    scene.line.refuse(true);
    scene.line.cut();
    assert!(!scene.not_ready().await.is_empty());
    for _ in 0..20 {
        let slot = scene.pass();
        scene.confirm(slot);
    }
    sleep(Duration::from_millis(400)).await;
    assert!(
        scene.reader().not_ready().is_some(),
        "nobody told it anything"
    );
    scene.line.refuse(false);
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_without_a_stream_serves_no_view() {
    let scene = Scene::ready().await;
    scene.line.refuse(true);
    scene.line.cut();
    assert!(!scene.not_ready().await.is_empty());
    let reader = scene.reader();
    use sluice_simulations::faults::observed::Level;
    assert_eq!(reader.moment(Level::Processed), None);
    assert_eq!(reader.moment(Level::Confirmed), None);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_are_answered_and_leave_the_subscription_as_it_is() {
    let mut scene = Scene::ready().await;
    for _ in 0..3 {
        scene.world.tell(Message::Ping);
        scene.pass();
    }
    scene.agree().await;
    while scene.server.pongs() < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_only_pings_makes_the_market_say_so() {
    let mut scene = Scene::ready().await;
    let world = scene.world.clone();
    let pinging = tokio::spawn(async move {
        loop {
            world.tell(Message::Ping);
            sleep(Duration::from_millis(500)).await;
        }
    });
    let reason = scene.not_ready().await;
    assert!(reason.contains("slot"), "{reason}");
    // The slots come after all.
    scene.settle().await;
    pinging.abort();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_nothing_moves_is_given_up() {
    let mut scene = Scene::ready().await;
    scene.line.freeze(true);
    scene.pass();
    assert!(!scene.not_ready().await.is_empty());
    scene.line.freeze(false);
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_server_is_used_when_the_first_cannot_be_reached() {
    let mut scene = Scene::staged(async |_, _| {
        // Bound and given back: nobody listens there.
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = free.local_addr().expect("it is bound");
        vec![format!("http://{address}")]
    })
    .await;
    scene.settle().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_server_takes_over_when_the_first_dies() {
    let mut first = None;
    let mut scene = Scene::staged(async |_, server| {
        let line = Line::to(server.address()).await.expect("a free port");
        let url = line.url();
        first = Some(line);
        vec![url]
    })
    .await;
    scene.settle().await;
    let first = first.expect("it was set up");
    first.refuse(true);
    first.cut();
    scene.pass();
    scene.settle().await;
    assert!(scene.server.requests().len() >= 2);
    scene.end().await;
}
