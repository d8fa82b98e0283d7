//! The end: nothing hangs, and nothing is left behind.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use fila_client::proto::{self, ErrorKind, QueueConfig};
use fila_client::{Client, Error, NO_HEADERS};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

use crate::fake::{Fake, message, messages, passing, settle_all, take_all};
use crate::{eventually, within};

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// A fake on a runtime of its own, so that tasks are counted without it.
struct Elsewhere {
    fake: Fake,
    runtime: Option<Runtime>,
}

impl Elsewhere {
    fn start(make: impl Future<Output = Fake> + Send + 'static) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let fake = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(make)).join().expect("no panic"));
        Self { fake, runtime: Some(runtime) }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

async fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context))).await
}

#[tokio::test]
async fn closing_waits_for_nobody_who_has_stopped_waiting() {
    let fake = Fake::start(async |call| call.given_up().await).await;
    let client = Client::connect(&fake.address).expect("a client");
    // They have begun, and are neither dropped nor waited for.
    let mut asking = Box::pin(client.describe());
    let mut creating = Box::pin(client.create_queue("q", QueueConfig::default()));
    for _ in 0..100 {
        assert!(poll_once(&mut asking).await.is_pending() && poll_once(&mut creating).await.is_pending());
        tokio::task::yield_now().await;
    }
    within(client.close()).await;
    assert!(matches!(within(asking).await, Err(Error::Closed(_))));
    assert!(matches!(within(creating).await, Err(Error::Closed(_))));
}

#[tokio::test]
async fn closing_ends_calls_that_wait_for_another_attempt() {
    let (told, mut refused) = mpsc::unbounded_channel();
    let fake = Fake::start(move |mut call| {
        let told = told.clone();
        async move {
            let hours = proto::Error { retry_after_ms: 3_600_000, ..passing(8, ErrorKind::QuotaExceeded) };
            if call.path == "Describe" {
                call.refuse(hours);
                let _ = told.send(());
                return;
            }
            call.open(&[]);
            while let Some(request) = call.read::<proto::EnqueueBatchRequest>().await {
                let (error, sequence) = (Some(hours.clone()), request.sequence);
                call.send(&proto::EnqueueBatchResponse { error, sequence, ..Default::default() });
                let _ = told.send(());
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_secs(86_400));
    let (asking, enqueueing) = (client.clone(), client.clone());
    let asking = tokio::spawn(async move { asking.describe().await.map(drop) });
    let enqueueing = tokio::spawn(async move { enqueueing.enqueue("q", NO_HEADERS, "x").await.map(drop) });
    for _ in 0..2 {
        within(refused.recv()).await.expect("refused");
    }
    within(client.close()).await;
    assert!(matches!(within(asking).await, Ok(Err(Error::Closed(_)))));
    assert!(matches!(within(enqueueing).await, Ok(Err(Error::Closed(_)))));
}

#[tokio::test]
async fn a_closed_client_refuses_at_once() {
    let fake = Fake::start(take_all).await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
    within(client.close()).await;
    within(client.close()).await;
    assert!(matches!(within(client.enqueue("q", NO_HEADERS, "x")).await, Err(Error::Closed(_))));
    assert!(matches!(within(client.describe()).await, Err(Error::Closed(_))));
    assert!(matches!(within(client.ack("q", "1")).await, Err(Error::Closed(_))));
    assert!(matches!(client.consume("q"), Err(Error::Closed(_))));
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_nobody() {
    // It accepts connections, and that is all.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = Client::connect(silent.local_addr().expect("bound").to_string()).expect("a client");
    let sending = client.clone();
    let sending = tokio::spawn(async move { sending.enqueue("q", NO_HEADERS, vec![0; 8 << 20]).await.map(drop) });
    let consumer = client.consume("q").expect("a consumer");
    let _held = within(silent.accept()).await.expect("a connection");
    within(consumer.stop()).await;
    within(client.close()).await;
    assert!(matches!(within(sending).await, Ok(Err(Error::Closed(_)))));
}

#[tokio::test]
async fn all_tasks_end_with_the_client_whether_it_is_closed_or_dropped() {
    let elsewhere = Elsewhere::start(Fake::start(async |mut call| match call.path.as_str() {
        "EnqueueStream" => take_all(call).await,
        "Settle" => settle_all(call).await,
        _ => {
            call.open(&[("fila-visibility-timeout-ms", "30000")]);
            call.send(&messages(["1", "2"].map(message)));
            call.given_up().await;
        }
    }));
    let before = tasks();
    for closed in [true, false] {
        let client = Client::connect(&elsewhere.fake.address).expect("a client");
        within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
        let mut consumer = client.consume("q").expect("a consumer");
        let got = within(consumer.recv()).await.expect("a message").expect("no error");
        within(got.ack()).await.expect("acked");
        assert!(tasks() > before);
        if closed {
            within(client.close()).await;
            assert_eq!(tasks(), before);
        }
        drop((client, consumer, got));
        eventually(async || tasks() == before).await;
    }
}

/// The timeout is an hour: nothing of a consumer that has ended waits for a part of it.
#[tokio::test]
async fn nothing_of_a_stopped_consumer_is_left_when_its_messages_are_settled() {
    let elsewhere = Elsewhere::start(Fake::start(async |mut call| match call.path.as_str() {
        "Settle" => settle_all(call).await,
        _ => {
            call.open(&[("fila-visibility-timeout-ms", "3600000")]);
            call.send(&messages(["1", "2", "3"].map(message)));
            while call.read::<proto::ConsumeRequest>().await.is_some() {}
            call.end();
        }
    }));
    let client = Client::connect(&elsewhere.fake.address).expect("a client");
    within(client.ack("q", "0")).await.expect("acked");
    let before = tasks();
    let mut consumer = client.consume("q").expect("a consumer");
    let held = within(consumer.recv()).await.expect("a message").expect("no error");
    let dropped = within(consumer.recv()).await.expect("a message").expect("no error");
    within(consumer.stop()).await;
    eventually(async || tasks() == before + 1).await;
    drop(dropped);
    within(held.ack()).await.expect("acked");
    eventually(async || tasks() == before).await;
}

#[test]
fn a_consumer_whose_runtime_has_ended_says_so() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut consumer =
        runtime.block_on(async { Client::connect("127.0.0.1:1").expect("a client").consume("q").expect("a consumer") });
    drop(runtime);
    let other = Builder::new_current_thread().enable_all().build().expect("a runtime");
    assert!(matches!(other.block_on(within(consumer.recv())), Some(Err(Error::Closed(_)))));
    assert!(other.block_on(within(consumer.recv())).is_none());
    other.block_on(within(consumer.stop()));
}
