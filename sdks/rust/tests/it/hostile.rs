//! What a peer sends harms nobody: there is an error, or the client goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::fake::{Fake, message, messages, refusal, settle_all, taken};
use crate::within;
use fila_client::proto::{self, ErrorKind};
use fila_client::{Client, ConsumeOptions, Error, NO_HEADERS};

/// A status whose details are not base64.
const GARBAGE: [(&str, &str); 3] =
    [("grpc-status", "14"), ("grpc-message", "garbage"), ("grpc-status-details-bin", "*** no base64 ***")];

#[tokio::test]
async fn details_that_cannot_be_read_are_left_out() {
    let first = AtomicUsize::new(0);
    let fake = Fake::start(move |mut call| {
        let first = first.fetch_add(1, Ordering::SeqCst) < 2;
        async move {
            match call.path.as_str() {
                "EnqueueStream" if !first => {
                    call.open(&[]);
                    while let Some(request) = call.read().await {
                        call.send(&taken(&request));
                    }
                }
                // Trailers after a response, and trailers alone.
                "CreateQueue" => {
                    call.open(&[]);
                    call.trailers(&GARBAGE);
                }
                _ => call.trailers(&GARBAGE),
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let error = within(client.create_queue("q", Default::default())).await.expect_err("refused");
    assert!(matches!(error, Error::Unavailable(_)) && error.to_string().contains("garbage"), "{error:?}");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("the stream was opened again");
    let mut consumer = client.consume("q").expect("a consumer");
    let got = tokio::time::timeout(Duration::from_millis(200), consumer.recv()).await;
    assert!(got.is_err(), "it tries again and again: {got:?}");
    within(consumer.stop()).await;
    within(client.close()).await;
}

#[tokio::test]
async fn an_answer_to_another_request_is_no_answer() {
    let fake = Fake::start(async |mut call| {
        call.open(&[]);
        if call.path == "Settle" {
            let _: Option<proto::SettleRequest> = call.read().await;
            call.send(&proto::SettleResponse { sequence: 99, ..Default::default() });
        } else {
            let request: proto::EnqueueBatchRequest = call.read().await.expect("a batch");
            call.send(&proto::EnqueueBatchResponse { sequence: 99, ..taken(&request) });
        }
        call.given_up().await;
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("no answer to it");
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
    let error = within(client.ack("q", "1")).await.expect_err("no answer to it");
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
}

#[tokio::test]
async fn results_of_another_number_of_messages_are_no_answer() {
    let fake = Fake::start(async |mut call| {
        call.open(&[]);
        let request: proto::EnqueueBatchRequest = call.read().await.expect("a batch");
        call.send(&proto::EnqueueBatchResponse { sequence: request.sequence, ..Default::default() });
        call.given_up().await;
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("no answer to it");
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
}

#[tokio::test]
async fn a_failure_of_a_message_that_nobody_named_is_not_taken_for_a_success() {
    let fake = Fake::start(async |mut call| {
        call.open(&[]);
        let request: proto::SettleRequest = call.read().await.expect("a settlement");
        let error = Some(refusal(5, ErrorKind::LeaseEnded));
        let failures = vec![proto::SettleFailure { queue: "q".into(), message_id: "other".into(), error }];
        call.send(&proto::SettleResponse { sequence: request.sequence, failures, error: None });
        call.given_up().await;
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    assert!(matches!(within(client.ack("q", "1")).await, Err(Error::Internal(_))));
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_ends_the_stream_and_no_more() {
    let fake = Fake::start(async |mut call| {
        call.open(&[]);
        if call.connection == 0 {
            let request: proto::EnqueueBatchRequest = call.read().await.expect("a batch");
            call.send(&taken(&request));
            call.send(&taken(&request));
        }
        while let Some(request) = call.read().await {
            call.send(&taken(&request));
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    for _ in 0..2 {
        within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
    }
}

#[tokio::test]
async fn counts_beyond_all_bounds_are_no_panic() {
    let fake = Fake::start(async |call| {
        let cursor = "more".to_owned();
        match call.path.as_str() {
            "Redrive" => call.reply(&proto::RedriveResponse { redriven: u64::MAX, cursor }),
            _ => call.reply(&proto::PurgeResponse { purged: u64::MAX - 1, cursor }),
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    assert_eq!(within(client.redrive("q.dlq", 3, None)).await.expect("told"), u64::MAX);
    assert_eq!(within(client.purge("q.dlq", u64::MAX, None)).await.expect("told"), u64::MAX);
}

/// A broker that ignores the credit, or whose leases have ended, would else fill the memory of a client that is busy.
#[tokio::test]
async fn more_than_the_credit_is_not_kept() {
    let streams = Arc::new(AtomicUsize::new(0));
    let counted = streams.clone();
    let fake = Fake::start(move |mut call| {
        let counted = counted.clone();
        async move {
            if call.path == "Settle" {
                return settle_all(call).await;
            }
            call.open(&[]);
            call.send(&messages((0..4).map(|number| message(&number.to_string()))));
            if counted.fetch_add(1, Ordering::SeqCst) < 2 {
                call.send(&messages([message("too many")]));
            }
            call.given_up().await;
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume_with("q", ConsumeOptions::new().max_in_flight(4)).expect("a consumer");
    crate::eventually(async || streams.load(Ordering::SeqCst) == 3).await;
    for number in 0..4 {
        let got = within(consumer.recv()).await.expect("it goes on").expect("a message");
        assert_eq!(got.id(), number.to_string());
    }
    within(client.close()).await;
}

#[tokio::test]
async fn a_larger_response_than_allowed_is_an_error() {
    let fake = Fake::start(async |call| {
        call.reply(&proto::DescribeResponse { version: "x".repeat(2000), ..Default::default() });
    })
    .await;
    let bounded = Client::builder([&fake.address]).max_response_bytes(1000).connect().expect("a client");
    assert!(matches!(within(bounded.describe()).await, Err(Error::LimitExceeded(_))));
    within(Client::connect(&fake.address).expect("a client").describe()).await.expect("an answer");
}

/// Nothing that the server does not answer is kept for longer than somebody waits for it.
#[tokio::test]
async fn what_was_given_up_makes_room_for_others() {
    let owner = Fake::start(crate::fake::take_all).await;
    let (address, silent) = (owner.address.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = silent.clone();
    let member = Fake::start(move |mut call| {
        let (address, seen) = (address.clone(), seen.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<proto::EnqueueBatchRequest>().await {
                if request.queue == "silent" {
                    seen.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                let error = Some(crate::fake::not_owner(&address));
                call.send(&proto::EnqueueBatchResponse { error, sequence: request.sequence, ..Default::default() });
            }
        }
    })
    .await;
    let client = Client::builder([&member.address]).buffer_bytes(10_000).connect().expect("a client");
    within(client.enqueue("other", NO_HEADERS, "x")).await.expect("the owner takes it");
    let waiting = |size: usize| {
        let (client, payload) = (client.clone(), vec![0; size]);
        tokio::spawn(async move { client.enqueue("silent", NO_HEADERS, payload).await.map(drop) })
    };
    let mut in_flight = Vec::new();
    for number in 1..=2 {
        in_flight.push(waiting(100));
        crate::eventually(async || silent.load(Ordering::SeqCst) >= number).await;
    }
    // It waits behind the others, and takes the room that is left.
    let given_up = waiting(8_500);
    tokio::task::yield_now().await;
    given_up.abort();
    assert!(within(given_up).await.is_err());
    within(client.enqueue("other", NO_HEADERS, vec![0; 5_000])).await.expect("there is room again");
    for waiting in in_flight {
        waiting.abort();
    }
}
