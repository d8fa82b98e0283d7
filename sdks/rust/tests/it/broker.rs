//! The client beside a real broker.

use std::time::Duration;

use fila_client::proto::{DeadLetterReason, PeekRequest};
use fila_client::{Error, ErrorKind, NO_HEADERS, OutgoingMessage};

use crate::server::Server;
use crate::{eventually, within};

include!("quickstart.rs");

#[test]
fn the_quickstart_is_the_one_of_the_readme() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains(include_str!("quickstart.rs").trim_end()));
}

async fn started() -> (Server, Client) {
    let server = Server::start().await;
    let client = Client::connect(&server.address).expect("a client");
    (server, client)
}

#[tokio::test]
async fn the_quickstart_works() {
    let (server, client) = started().await;
    within(quickstart(&server.address)).await.expect("it works");
    let left = within(client.queue_stats("orders")).await.expect("figures").summary.expect("a summary");
    assert_eq!((left.depth, left.in_flight), (0, 0));
}

#[tokio::test]
async fn a_message_has_all_that_the_contract_gives_it() {
    let (_server, client) = started().await;
    let config = QueueConfig { fairness_header: Some("tenant".to_owned()), ..Default::default() };
    within(client.create_queue("q", config)).await.expect("created");
    let sent =
        OutgoingMessage::new(vec![0, 255]).header("tenant", "acme").header("ключ", "").priority(2).dedup_key("d");
    let first = within(client.enqueue_message("q", sent.clone())).await.expect("enqueued");
    let second = within(client.enqueue_message("q", sent)).await.expect("answered");
    assert!(!first.duplicate && second.duplicate && first.id == second.id);
    let mut consumer = client.consume("q").expect("a consumer");
    let got = within(consumer.recv()).await.expect("a message").expect("no error");
    assert_eq!((got.id(), got.queue(), got.fairness_key(), got.attempt_count()), (first.id.as_str(), "q", "acme", 0));
    assert_eq!((&got.payload()[..], got.headers()["ключ"].as_str(), got.metadata().priority), (&[0, 255][..], "", 2));
    assert!(got.enqueued_at().is_some() && !got.lease_id().is_empty());
    within(got.nack("not now")).await.expect("nacked");
    let again = within(consumer.recv()).await.expect("a message").expect("no error");
    assert_eq!(again.attempt_count(), 1);
    within(again.release()).await.expect("released");
    let again = within(consumer.recv()).await.expect("a message").expect("no error");
    assert_eq!(again.attempt_count(), 1);
    within(again.extend(Duration::from_secs(60))).await.expect("extended");
    within(client.ack("q", again.id())).await.expect("acked");
    let late = within(again.ack()).await.expect_err("it is gone");
    assert!(matches!(late, Error::MessageNotFound(_)), "{late:?}");
}

#[tokio::test]
async fn dead_letters_are_looked_at_moved_and_removed() {
    let (_server, client) = started().await;
    within(client.create_queue("q", QueueConfig::default())).await.expect("created");
    let messages = (0..5).map(|number| OutgoingMessage::new(number.to_string()));
    for sent in within(client.enqueue_many("q", messages)).await {
        sent.expect("enqueued");
    }
    let mut consumer = client.consume("q").expect("a consumer");
    for _ in 0..5 {
        let got = within(consumer.recv()).await.expect("a message").expect("no error");
        within(got.reject("broken")).await.expect("rejected");
    }
    within(consumer.stop()).await;
    let request = PeekRequest { queue: "q.dlq".to_owned(), ..Default::default() };
    let dead = within(client.peek(request)).await.expect("a page").messages;
    let letter = dead[0].message.as_ref().and_then(|message| message.metadata.as_ref()?.dead_letter.as_ref());
    assert_eq!(letter.map(|letter| letter.reason()), Some(DeadLetterReason::Rejected));
    assert_eq!(within(client.redrive("q.dlq", 2, None)).await.expect("moved"), 2);
    assert_eq!(within(client.purge("q.dlq", 1, None)).await.expect("removed"), 1);
    assert_eq!(within(client.purge("q.dlq", 0, None)).await.expect("removed"), 2);
    let why = within(client.explain("q", None)).await.expect("an explanation");
    assert!(!why.reasons.is_empty());
    assert_eq!(within(client.delete_queue("q", true)).await.expect("deleted"), 2);
}

#[tokio::test]
async fn settings_and_throttles_are_kept() {
    let (_server, client) = started().await;
    within(client.set_throttle("provider:aws", "rate=50,burst=100")).await.expect("set");
    assert_eq!(within(client.get_config("throttle.provider:aws")).await.expect("found"), "rate=50,burst=100");
    assert_eq!(within(client.list_config("throttle.")).await.expect("listed").len(), 1);
    assert!(within(client.remove_throttle("provider:aws")).await.expect("removed"));
    assert!(!within(client.remove_throttle("provider:aws")).await.expect("told"));
    assert!(matches!(within(client.get_config("throttle.provider:aws")).await, Err(Error::ConfigNotFound(_))));
    within(client.create_queue("q", QueueConfig::default())).await.expect("created");
    let again = within(client.create_queue("q", QueueConfig::default())).await;
    assert!(matches!(again, Err(Error::QueueAlreadyExists(_))));
    let changed = QueueConfig { max_depth: Some(7), ..Default::default() };
    assert_eq!(within(client.update_queue("q", changed)).await.expect("changed").max_depth, Some(7));
    within(client.pause_queue("q")).await.expect("paused");
    within(client.resume_queue("q")).await.expect("resumed");
    let names: Vec<String> =
        within(client.list_queues()).await.expect("listed").into_iter().map(|queue| queue.name).collect();
    assert!(names.contains(&"q".to_owned()), "{names:?}");
}

#[tokio::test]
async fn what_is_too_large_fails_alone() {
    let (_server, client) = started().await;
    within(client.create_queue("q", QueueConfig::default())).await.expect("created");
    // Larger than a message may be, and larger than a request may be.
    for size in [5 << 20, 20 << 20] {
        let (large, small) =
            tokio::join!(client.enqueue("q", NO_HEADERS, vec![0; size]), client.enqueue("q", NO_HEADERS, "small"),);
        assert!(matches!(large, Err(Error::LimitExceeded(_))), "{size}: {large:?}");
        small.expect("enqueued");
    }
    let missing = within(client.enqueue("nowhere", NO_HEADERS, "x")).await.expect_err("refused");
    assert_eq!((missing.kind(), missing.is_retryable()), (Some(ErrorKind::QueueNotFound), false));
}

/// Other consumers have it at once, without an attempt counted.
#[tokio::test]
async fn what_a_consumer_prefetched_goes_back_when_it_stops() {
    let (_server, client) = started().await;
    within(client.create_queue("q", QueueConfig::default())).await.expect("created");
    for number in 0..10 {
        within(client.enqueue("q", NO_HEADERS, number.to_string())).await.expect("enqueued");
    }
    let mut consumer = client.consume("q").expect("a consumer");
    let held = within(consumer.recv()).await.expect("a message").expect("no error");
    let figures = async || within(client.queue_stats("q")).await.expect("figures").summary.expect("a summary");
    eventually(async || figures().await.in_flight == 10).await;
    within(consumer.stop()).await;
    assert_eq!(figures().await.in_flight, 1);
    let mut other = client.consume("q").expect("a consumer");
    let got = within(other.recv()).await.expect("a message").expect("no error");
    assert_eq!(got.attempt_count(), 0);
    within(held.ack()).await.expect("it is still ours");
}
