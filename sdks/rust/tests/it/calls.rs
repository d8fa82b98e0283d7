//! Deadlines, retries, and the members that others name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fila_client::proto::{self, ErrorKind, QueueConfig};
use fila_client::{Client, Error, NO_HEADERS};
use tokio::net::TcpListener;

use crate::fake::{Call, Fake, not_owner, passing, refusal, take_all, taken};
use crate::within;

/// An address at which nobody listens.
async fn nowhere() -> String {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    free.local_addr().expect("bound").to_string()
}

/// Answers with the number of the connection.
fn describe(call: Call) {
    let version = call.connection.to_string();
    call.reply(&proto::DescribeResponse { version, ..Default::default() });
}

#[tokio::test]
async fn a_time_without_end_is_a_time() {
    let fake =
        Fake::start(async |call| if call.path == "Describe" { describe(call) } else { take_all(call).await }).await;
    let longest =
        Client::builder([&fake.address]).keepalive(Duration::MAX, Duration::MAX).connect_timeout(Duration::MAX);
    let client = longest.timeout(Duration::MAX).connect().expect("a client");
    within(client.describe()).await.expect("an answer");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
}

#[tokio::test]
async fn a_call_that_was_never_sent_is_told_as_unavailable() {
    let client = Client::connect(nowhere().await).expect("a client").with_timeout(Duration::from_millis(300));
    for error in [
        within(client.describe()).await.expect_err("nobody is there"),
        within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("nobody is there"),
    ] {
        assert!(matches!(error, Error::Unavailable(_)) && error.is_retryable(), "{error:?}");
    }
}

#[tokio::test]
async fn a_call_that_may_have_been_done_is_not_told_as_refused_or_unavailable() {
    // The first attempt is refused, the second one is never answered.
    let attempts = Arc::new(AtomicUsize::new(0));
    let fake = Fake::start(move |mut call| {
        let attempts = attempts.clone();
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<proto::EnqueueBatchRequest>().await {
                if attempts.fetch_add(1, Ordering::SeqCst) == 0 {
                    let error = Some(passing(8, ErrorKind::QueueFull));
                    call.send(&proto::EnqueueBatchResponse { error, sequence: request.sequence, ..Default::default() });
                }
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_millis(500));
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("there is no answer");
    assert!(matches!(error, Error::DeadlineExceeded(_)), "{error:?}");

    // The batch arrives, then the server is gone.
    let gone = Fake::start(async |mut call| {
        call.open(&[]);
        let _: Option<proto::EnqueueBatchRequest> = call.read().await;
        call.cut();
    })
    .await;
    let client = Client::connect(&gone.address).expect("a client").with_timeout(Duration::from_millis(500));
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("there is no answer");
    assert!(matches!(error, Error::DeadlineExceeded(_)), "{error:?}");
}

#[tokio::test]
async fn a_refusal_that_lasts_is_told_as_what_it_is() {
    let fake = Fake::start(async |call| call.refuse(passing(8, ErrorKind::Overloaded))).await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_millis(300));
    let error = within(client.describe()).await.expect_err("refused");
    assert_eq!(error.kind(), Some(ErrorKind::Overloaded));
}

#[tokio::test]
async fn what_must_not_be_done_twice_is_sent_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let fake = Fake::start(move |call: Call| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { call.cut() }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_millis(500));
    assert!(within(client.create_queue("q", QueueConfig::default())).await.is_err());
    assert!(within(client.purge("q.dlq", 5, None)).await.is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert!(within(client.purge("q.dlq", 0, None)).await.is_err());
    assert!(calls.load(Ordering::SeqCst) > 3, "all that are left: again and again");
}

#[tokio::test]
async fn a_list_ends_at_the_deadline_although_it_has_no_end() {
    let fake = Fake::start(async |call| {
        call.reply(&proto::ListQueuesResponse { cursor: "more".to_owned(), ..Default::default() });
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_millis(300));
    assert!(matches!(within(client.list_queues()).await, Err(Error::DeadlineExceeded(_))));
}

#[tokio::test]
async fn a_deadline_leaves_the_connection_alone() {
    let fake = Fake::start(async |call| match call.path.as_str() {
        "Describe" => describe(call),
        // Some milliseconds after the deadline that was sent along.
        _ => call.given_up().await,
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.describe()).await.expect("an answer");
    for _ in 0..20 {
        let hurried = client.with_timeout(Duration::from_millis(5));
        let error = within(hurried.pause_queue("q")).await.expect_err("no answer");
        assert!(matches!(error, Error::DeadlineExceeded(_)), "{error:?}");
    }
    assert_eq!(within(client.describe()).await.expect("an answer").version, "0", "it is the first connection");
}

#[tokio::test]
async fn a_key_that_has_ended_is_tried_once_more() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let fake = Fake::start(move |call: Call| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { call.refuse(refusal(16, ErrorKind::KeyEnded)) }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let error = within(client.describe()).await.expect_err("refused");
    assert_eq!((error.kind(), calls.swap(0, Ordering::SeqCst)), (Some(ErrorKind::KeyEnded), 2));
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("refused");
    assert_eq!((error.kind(), calls.swap(0, Ordering::SeqCst)), (Some(ErrorKind::KeyEnded), 2));
    let error = within(client.consume("q").expect("open").recv()).await.expect("an end").expect_err("refused");
    assert_eq!((error.kind(), calls.load(Ordering::SeqCst)), (Some(ErrorKind::KeyEnded), 2));
}

#[tokio::test]
async fn a_key_in_a_file_is_exchanged_by_replacing_the_file() {
    let fake = Fake::start(async |call| {
        let key = call.headers["authorization"].to_str().expect("text").to_owned();
        call.reply(&proto::DescribeResponse { version: key, ..Default::default() });
    })
    .await;
    let path = std::env::temp_dir().join(format!("fila-rust-key-{}", fake.address.replace([':', '.'], "-")));
    std::fs::write(&path, "first\n").expect("written");
    let client = Client::builder([&fake.address]).api_key_file(&path).connect().expect("a client");
    assert_eq!(within(client.describe()).await.expect("an answer").version, "Bearer first");
    std::fs::write(&path, "the second\n").expect("written");
    assert_eq!(within(client.describe()).await.expect("an answer").version, "Bearer first", "that is no key");
    std::fs::write(&path, "the-second\n").expect("written");
    assert_eq!(within(client.describe()).await.expect("an answer").version, "Bearer the-second");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(within(client.describe()).await.expect("an answer").version, "Bearer the-second");
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_once() {
    for address in ["broker", "::1:5555", "http://broker:5555"] {
        assert!(matches!(Client::connect(address), Err(Error::InvalidArgument(_))), "{address}");
    }
    assert!(matches!(Client::builder(Vec::<String>::new()).connect(), Err(Error::InvalidArgument(_))));
    let (none, some) = (Duration::ZERO, Duration::from_secs(1));
    let builder = || Client::builder(["broker:5555"]);
    for built in [builder().keepalive(none, some), builder().keepalive(some, none), builder().connect_timeout(none)] {
        assert!(matches!(built.connect(), Err(Error::InvalidArgument(_))));
    }
    for key in ["", " \n", "two words", "schlüssel"] {
        let built = Client::builder(["broker:5555"]).api_key(key).connect();
        assert!(matches!(built, Err(Error::InvalidArgument(_))), "{key:?}");
    }
}

#[tokio::test]
async fn the_member_that_is_named_is_asked_however_many_were_named_before() {
    let owner = Fake::start(take_all).await;
    let address = owner.address.clone();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let member = Fake::start(move |mut call| {
        let (address, asked) = (address.clone(), counted.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<proto::EnqueueBatchRequest>().await {
                // Members come and go: nobody listens where the first ones are said to be.
                let number = asked.fetch_add(1, Ordering::SeqCst);
                let named = if number < 70 { format!("127.0.0.1:{}", 60_000 + number) } else { address.clone() };
                let error = Some(not_owner(&named));
                call.send(&proto::EnqueueBatchResponse { error, sequence: request.sequence, ..Default::default() });
            }
        }
    })
    .await;
    let client = Client::connect(&member.address).expect("a client");
    let hurried = client.with_timeout(Duration::from_millis(40));
    let mut number = 0;
    while asked.load(Ordering::SeqCst) < 70 {
        let _ = within(hurried.enqueue(&format!("q{number}"), NO_HEADERS, "x")).await;
        number += 1;
    }
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("the owner takes it");
}

#[tokio::test]
async fn an_answer_that_was_passed_on_leads_to_the_owner_unless_it_cannot_be_reached() {
    let owner = Fake::start(async |call| match call.path.as_str() {
        "PauseQueue" => call.reply(&proto::PauseQueueResponse::default()),
        _ => call.refuse(refusal(12, ErrorKind::Unsupported)),
    })
    .await;
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, address, away) = (calls.clone(), owner.address.clone(), nowhere().await);
    let passing_on = Fake::start(move |mut call| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (address, away) = (address.clone(), away.clone());
        async move {
            let request: proto::PauseQueueRequest = call.read().await.expect("a request");
            let named = if request.queue == "reachable" { &address } else { &away };
            call.open(&[]);
            call.send(&proto::PauseQueueResponse::default());
            call.trailers(&[("grpc-status", "0"), ("fila-owner", named)]);
        }
    })
    .await;
    let client = Client::connect(&passing_on.address).expect("a client");
    for _ in 0..3 {
        within(client.pause_queue("reachable")).await.expect("paused");
    }
    assert_eq!(calls.swap(0, Ordering::SeqCst), 1, "the owner was asked from then on");
    for _ in 0..5 {
        within(client.pause_queue("away")).await.expect("paused");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 5, "the owner was tried once, and then left alone");
}

/// Tasks of members belong to the runtime of the client, and not to the one that made the call.
#[test]
fn a_runtime_that_calls_and_ends_takes_nothing_along() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (client, _fakes) = runtime.block_on(async {
        let owner = Fake::start(take_all).await;
        let address = owner.address.clone();
        let member = Fake::start(move |mut call| {
            let address = address.clone();
            async move {
                call.open(&[]);
                while let Some(request) = call.read::<proto::EnqueueBatchRequest>().await {
                    let error = Some(not_owner(&address));
                    call.send(&proto::EnqueueBatchResponse { error, sequence: request.sequence, ..Default::default() });
                }
            }
        })
        .await;
        (Client::connect(&member.address).expect("a client"), (owner, member))
    });
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    other.block_on(within(client.enqueue("q", NO_HEADERS, "1"))).expect("enqueued");
    drop(other);
    runtime.block_on(within(client.enqueue("q", NO_HEADERS, "2"))).expect("enqueued");
}

#[test]
fn a_client_without_a_runtime_is_an_error_and_no_panic() {
    assert!(matches!(Client::connect("127.0.0.1:1"), Err(Error::FailedPrecondition(_))));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = runtime.block_on(async { Client::connect("127.0.0.1:1") }).expect("a client");
    // Neither of these waits for anything, so they can be used anywhere.
    drop(client.consume("q").expect("a consumer"));
    drop(client);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn one_that_does_not_answer_the_handshake_of_tls_is_left() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let next = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addresses = [&silent, &next].map(|listener| listener.local_addr().expect("bound").to_string());
    let tls = fila_client::TlsConfig::new().ca(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ca.pem"));
    let connecting = Client::builder(addresses).tls(tls).connect_timeout(Duration::from_millis(50));
    let client = connecting.connect().expect("a client");
    let asking = tokio::spawn(async move { client.describe().await.map(drop) });
    let _held = within(silent.accept()).await.expect("a connection");
    within(next.accept()).await.expect("the next address has its turn");
    asking.abort();
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn files_of_tls_can_be_replaced_in_several_steps() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let path = std::env::temp_dir().join(format!("fila-rust-ca-{}", address.replace([':', '.'], "-")));
    std::fs::write(&path, include_str!("ca.pem")).expect("written");
    let tls = fila_client::TlsConfig::new().ca(&path);
    let client = Client::builder([&address]).tls(tls).connect().expect("a client");
    let asking = tokio::spawn(async move { client.describe().await.map(drop) });
    drop(within(listener.accept()).await.expect("a connection"));
    std::fs::remove_file(&path).expect("removed");
    for _ in 0..3 {
        drop(within(listener.accept()).await.expect("it goes on trying"));
    }
    asking.abort();
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn files_that_cannot_be_used_are_told_when_the_client_is_made() {
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ca.pem");
    let connect = |tls| Client::builder(["127.0.0.1:1"]).tls(tls).connect();
    assert!(connect(fila_client::TlsConfig::new().ca(ca)).is_ok());
    for wrong in [fila_client::TlsConfig::new().ca("nowhere"), fila_client::TlsConfig::new().ca(ca).identity(ca, ca)] {
        assert!(matches!(connect(wrong), Err(Error::Tls(_))));
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn an_address_of_version_six_can_have_tls() {
    let tls = fila_client::TlsConfig::new().ca(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ca.pem"));
    let builder = Client::builder(["[::1]:1"]).tls(tls);
    let client = builder.connect().expect("a client").with_timeout(Duration::from_millis(300));
    let error = within(client.describe()).await.expect_err("nobody is there");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn calls_are_taken_up_again_when_the_server_is_back() {
    let fake = Fake::start(async |mut call| {
        if call.connection < 3 {
            return call.cut();
        }
        call.open(&[]);
        while let Some(request) = call.read().await {
            call.send(&taken(&request));
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
}
