//! Consuming: reports, leases, and the end.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use fila_client::proto::{self, ConsumeRequest, ErrorKind};
use fila_client::{Client, ConsumeOptions, Consumer};
use tokio::sync::mpsc;

use crate::fake::{Call, Fake, message, messages, passing};
use crate::within;

type Seen<T> = mpsc::UnboundedReceiver<T>;

fn isolated(id: &str) -> proto::Message {
    let mut made = message(id);
    if let Some(metadata) = &mut made.metadata {
        metadata.isolation = proto::Isolation::Suspect.into();
    }
    made
}

/// Settles everything, and tells what.
async fn settle(mut call: Call, seen: mpsc::UnboundedSender<proto::SettleRequest>) {
    call.open(&[]);
    while let Some(request) = call.read::<proto::SettleRequest>().await {
        call.send(&proto::SettleResponse { sequence: request.sequence, ..Default::default() });
        let _ = seen.send(request);
    }
}

/// A fake that delivers on each stream, and tells what it reads and what is settled. `describe` serves round trips.
async fn delivering(
    delivered: Vec<proto::Message>,
    timeout_ms: &'static str,
    describe: impl Fn(Call) + Send + Sync + 'static,
) -> (Fake, Seen<Option<ConsumeRequest>>, Seen<proto::SettleRequest>) {
    let (requests, read) = mpsc::unbounded_channel();
    let (settlements, settled) = mpsc::unbounded_channel();
    let (delivered, describe) = (Arc::new(delivered), Arc::new(describe));
    let fake = Fake::start(move |mut call| {
        let (delivered, describe) = (delivered.clone(), describe.clone());
        let (requests, settlements) = (requests.clone(), settlements.clone());
        async move {
            match call.path.as_str() {
                "Describe" => describe(call),
                "Settle" => settle(call, settlements).await,
                _ => {
                    call.open(&[("fila-visibility-timeout-ms", timeout_ms)]);
                    call.send(&messages(delivered.iter().cloned()));
                    while let Some(request) = call.read::<ConsumeRequest>().await {
                        let _ = requests.send(Some(request));
                    }
                    let _ = requests.send(None);
                    call.end();
                }
            }
        }
    })
    .await;
    (fake, read, settled)
}

fn answered(call: Call) {
    call.reply(&proto::DescribeResponse::default());
}

#[tokio::test]
async fn a_stop_reports_what_was_handed_and_lets_the_application_finish() {
    let three = ["1", "2", "3"].map(message).to_vec();
    let (fake, mut read, mut settled) = delivering(three, "30000", answered).await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume_with("q", ConsumeOptions::new().max_in_flight(3)).expect("a consumer");
    let first = within(consumer.recv()).await.expect("a message").expect("no error");
    within(consumer.stop()).await;
    let mut requests = Vec::new();
    while let Some(request) = within(read.recv()).await.expect("a request") {
        requests.push(request);
    }
    assert_eq!((requests[0].queue.as_str(), requests[0].max_in_flight), ("q", Some(3)));
    assert_eq!(requests.last().map(|request| request.handed), Some(1), "{requests:?}");
    within(first.ack()).await.expect("acked");
    let acks = within(settled.recv()).await.expect("a settlement").acks;
    assert_eq!((acks[0].message_ids.clone(), acks[0].lease_id.as_str()), (vec!["1".to_owned()], "lease"));
}

#[tokio::test]
async fn the_credit_can_be_changed() {
    let (fake, mut read, _settled) = delivering(Vec::new(), "30000", answered).await;
    let client = Client::connect(&fake.address).expect("a client");
    let consumer = client.consume("q").expect("a consumer");
    assert_eq!(within(read.recv()).await.flatten().expect("a request").max_in_flight, Some(100));
    consumer.set_max_in_flight(0);
    assert_eq!(within(read.recv()).await.flatten().expect("a request").max_in_flight, Some(0));
}

#[tokio::test]
async fn a_message_that_may_kill_is_reported_before_the_application_has_it() {
    let (fake, mut read, _settled) = delivering(vec![isolated("1")], "30000", answered).await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume("q").expect("a consumer");
    let got = within(consumer.recv()).await.expect("a message").expect("no error");
    let mut requests = Vec::new();
    while let Ok(Some(request)) = read.try_recv() {
        requests.push(request.handed);
    }
    assert_eq!((got.id(), requests), ("1", vec![0, 1]));
}

/// Asks for a message until its report is on the way, and then no more. Returns the call that must be answered first.
async fn ask_in_vain(consumer: &mut Consumer, reported: &mut Seen<Call>) -> Call {
    within(async {
        tokio::select! {
            biased;
            call = reported.recv() => call.expect("a call"),
            got = consumer.recv() => panic!("it is not confirmed yet: {got:?}"),
        }
    })
    .await
}

#[tokio::test]
async fn one_that_was_reported_and_never_taken_is_released() {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let holding = move |call| drop(reports.send(call));
    let (fake, _read, mut settled) = delivering(vec![isolated("1")], "30000", holding).await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume("q").expect("a consumer");
    // The call is never answered, and the consumer can be stopped all the same.
    let _call = ask_in_vain(&mut consumer, &mut reported).await;
    within(consumer.stop()).await;
    let nacks = within(settled.recv()).await.expect("a settlement").nacks;
    assert!(nacks.len() == 1 && nacks[0].message_id == "1" && nacks[0].release, "{nacks:?}");
}

#[tokio::test]
async fn asking_can_be_given_up_and_taken_up_again() {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let holding = move |call| drop(reports.send(call));
    let (fake, _read, _settled) = delivering(vec![isolated("1")], "30000", holding).await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume("q").expect("a consumer");
    answered(ask_in_vain(&mut consumer, &mut reported).await);
    assert_eq!(within(consumer.recv()).await.expect("a message").expect("no error").id(), "1");
}

#[tokio::test]
async fn a_report_that_is_not_confirmed_is_made_again_on_another_stream() {
    let refusals = AtomicUsize::new(2);
    let describe = move |call: Call| match refusals.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
        Ok(_) => call.refuse(passing(8, ErrorKind::Overloaded)),
        Err(_) => answered(call),
    };
    let (fake, _read, _settled) = delivering(vec![isolated("1")], "30000", describe).await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume("q").expect("a consumer");
    assert_eq!(within(consumer.recv()).await.expect("a message").expect("no error").id(), "1");
}

#[tokio::test]
async fn leases_are_extended_until_it_is_certain_that_the_message_is_settled() {
    let (settlements, mut settled) = mpsc::unbounded_channel();
    let fake = Fake::start(move |mut call| {
        let settlements = settlements.clone();
        async move {
            if call.path == "Settle" {
                call.open(&[]);
                while let Some(request) = call.read::<proto::SettleRequest>().await {
                    // An ack is left without an answer, and those behind it too.
                    let _ = settlements.send(request);
                    if call.connection == 0 {
                        call.send(&proto::SettleResponse { sequence: 1, ..Default::default() });
                    }
                }
                return;
            }
            call.open(&[("fila-visibility-timeout-ms", "300")]);
            call.send(&messages([message("1")]));
            call.given_up().await;
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let mut consumer = client.consume("q").expect("a consumer");
    let got = within(consumer.recv()).await.expect("a message").expect("no error");
    let mut extensions = async || {
        within(async { while settled.recv().await.expect("a settlement").extends.is_empty() {} }).await;
    };
    extensions().await;
    let given_up = tokio::time::timeout(Duration::from_millis(50), got.ack()).await;
    assert!(!matches!(given_up, Ok(Ok(()))), "nobody has confirmed it");
    extensions().await;
}
