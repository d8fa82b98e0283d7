//! Enqueueing: calls travel together, and a lost answer doubles nothing.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fila_client::proto::{self, EnqueueBatchRequest, ErrorKind};
use fila_client::{Client, Error, NO_HEADERS, OutgoingMessage};
use tokio::sync::{Notify, mpsc};

use crate::fake::{Call, Fake, not_owner, passing, refusal, taken};
use crate::within;

#[tokio::test]
async fn calls_that_run_at_the_same_time_travel_together() {
    let (batches, mut seen) = mpsc::unbounded_channel();
    let (go, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (held, begun) = (go.clone(), gone.clone());
    let fake = Fake::start(move |mut call| {
        let (batches, held, begun) = (batches.clone(), held.clone(), begun.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                if request.sequence == 1 {
                    begun.notify_one();
                    held.notified().await;
                }
                call.send(&taken(&request));
                let _ = batches.send(request.messages.len());
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let enqueue = || {
        let client = client.clone();
        tokio::spawn(async move { client.enqueue("q", NO_HEADERS, "x").await })
    };
    let mut calls = vec![enqueue()];
    within(gone.notified()).await;
    calls.extend((0..500).map(|_| enqueue()));
    // All of them are waiting by the time that the first one is answered.
    tokio::task::yield_now().await;
    go.notify_one();
    for call in calls {
        within(call).await.expect("no panic").expect("enqueued");
    }
    drop(fake);
    drop(client);
    let (mut sizes, mut count) = (Vec::new(), 0);
    while count < 501 {
        let size = within(seen.recv()).await.expect("a batch");
        count += size;
        sizes.push(size);
    }
    assert!(sizes.len() <= 5, "{sizes:?}");
}

#[tokio::test]
async fn a_batch_without_an_answer_is_sent_again_as_it_was() {
    let seen: Arc<Mutex<Vec<EnqueueBatchRequest>>> = Arc::default();
    let (noted, refusals) = (seen.clone(), Arc::new(AtomicUsize::new(0)));
    let fake = Fake::start(move |mut call| {
        let (noted, refusals) = (noted.clone(), refusals.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                noted.lock().expect("no panic").push(request.clone());
                match call.connection {
                    0 => return call.cut(),
                    // A proxy that is busy has not said that nothing was done.
                    1 => return call.trailers(&[("grpc-status", "8")]),
                    // Neither has a broker that ends a stream because of load.
                    2 if refusals.fetch_add(1, SeqCst) == 0 => return call.refuse(passing(8, ErrorKind::Overloaded)),
                    _ => call.send(&taken(&request)),
                }
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.enqueue("q", [("a", "1")], "x")).await.expect("enqueued");
    let seen = seen.lock().expect("no panic");
    assert!(seen.len() == 4 && seen.iter().all(|request| *request == seen[0]), "{seen:?}");
}

/// A broker that takes all messages. The answers to the first `lost` batches are lost with their connection, the next
/// `refused` batches are refused for a while, without a look at their numbers.
async fn busy_after_a_loss(lost: usize, refused: usize, error: proto::Error) -> (Fake, Arc<Mutex<Vec<u64>>>) {
    let sequences: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = sequences.clone();
    let fake = Fake::start(move |mut call| {
        let (noted, error) = (noted.clone(), error.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                let number = {
                    let mut noted = noted.lock().expect("no panic");
                    noted.push(request.sequence);
                    noted.len()
                };
                if number < lost {
                    continue;
                } else if number == lost {
                    return call.cut();
                } else if number <= lost + refused {
                    let (error, sequence) = (Some(error.clone()), request.sequence);
                    call.send(&proto::EnqueueBatchResponse { error, sequence, ..Default::default() });
                } else {
                    call.send(&taken(&request));
                }
            }
        }
    })
    .await;
    (fake, sequences)
}

/// Under other numbers they would be enqueued twice.
#[tokio::test]
async fn batches_that_may_have_been_carried_out_keep_numbers_and_order_when_they_are_refused_for_a_while() {
    let (fake, sequences) = busy_after_a_loss(2, 1, passing(8, ErrorKind::Overloaded)).await;
    let client = Client::connect(&fake.address).expect("a client");
    let enqueue = || {
        let client = client.clone();
        tokio::spawn(async move { client.enqueue("q", NO_HEADERS, "x").await })
    };
    let first = enqueue();
    crate::eventually(async || sequences.lock().expect("no panic").len() == 1).await;
    let second = enqueue();
    let mut ids = Vec::new();
    for call in [first, second] {
        ids.push(within(call).await.expect("no panic").expect("enqueued"));
    }
    ids.push(within(client.enqueue("q", NO_HEADERS, "y")).await.expect("enqueued"));
    assert_eq!(ids, ["1-0", "2-0", "3-0"]);
    assert_eq!(*sequences.lock().expect("no panic"), [1, 2, 1, 1, 2, 3]);
}

#[tokio::test]
async fn what_was_never_sent_before_goes_out_under_a_new_number_when_it_is_refused_for_a_while() {
    let (fake, sequences) = busy_after_a_loss(0, 1, passing(8, ErrorKind::Overloaded)).await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
    assert_eq!(*sequences.lock().expect("no panic"), [1, 2]);
}

#[tokio::test]
async fn what_is_refused_until_its_deadline_may_or_may_not_have_been_carried_out() {
    let error = proto::Error { message: "too much waits".to_owned(), ..passing(8, ErrorKind::Overloaded) };
    let (fake, sequences) = busy_after_a_loss(1, usize::MAX - 1, error).await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_millis(500));
    let error = within(client.enqueue("q", NO_HEADERS, "x")).await.expect_err("refused");
    assert!(matches!(&error, Error::DeadlineExceeded(_)) && error.to_string().contains("too much waits"), "{error:?}");
    let sequences = sequences.lock().expect("no panic");
    assert!(sequences.len() > 2 && sequences.iter().all(|sequence| *sequence == 1), "{sequences:?}");
}

#[tokio::test]
async fn it_comes_again_no_sooner_than_the_broker_asks() {
    let error = proto::Error { retry_after_ms: 300, ..passing(8, ErrorKind::QuotaExceeded) };
    let (fake, sequences) = busy_after_a_loss(1, 1, error).await;
    let (client, began) = (Client::connect(&fake.address).expect("a client"), Instant::now());
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(*sequences.lock().expect("no panic"), [1, 1, 1]);
}

/// Says that the message of an ack is gone.
fn gone(request: &proto::SettleRequest) -> proto::SettleResponse {
    let error = Some(refusal(5, ErrorKind::MessageGone));
    let failures = vec![proto::SettleFailure { queue: "q".to_owned(), message_id: "1".to_owned(), error }];
    proto::SettleResponse { sequence: request.sequence, failures, error: None }
}

async fn all_gone(mut call: Call) {
    call.open(&[]);
    while let Some(request) = call.read().await {
        call.send(&gone(&request));
    }
}

/// A broker that carries out an ack and loses the answer, then refuses it once.
async fn ack_refused_after_a_loss(error: proto::Error) -> Fake {
    let acks = Arc::new(AtomicUsize::new(0));
    Fake::start(move |mut call| {
        let (acks, error) = (acks.clone(), error.clone());
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<proto::SettleRequest>().await {
                match acks.fetch_add(1, SeqCst) {
                    0 => return call.cut(),
                    1 => {
                        let (error, sequence) = (Some(error.clone()), request.sequence);
                        call.send(&proto::SettleResponse { error, sequence, ..Default::default() });
                    }
                    _ => call.send(&gone(&request)),
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn an_ack_that_is_refused_for_a_while_is_still_one_that_was_sent_before() {
    let fake = ack_refused_after_a_loss(passing(8, ErrorKind::Overloaded)).await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.ack("q", "1")).await.expect("it was carried out the first time");
}

#[tokio::test]
async fn an_ack_that_another_member_has_to_do_is_still_one_that_was_sent_before() {
    let owner = Fake::start(all_gone).await;
    let fake = ack_refused_after_a_loss(not_owner(&owner.address)).await;
    let client = Client::connect(&fake.address).expect("a client");
    within(client.ack("q", "1")).await.expect("it was carried out the first time");
}

#[tokio::test]
async fn an_ack_that_was_only_refused_before_was_not_carried_out_before() {
    let owner = Fake::start(all_gone).await;
    let address = owner.address.clone();
    let fake = Fake::start(move |mut call| {
        let address = address.clone();
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<proto::SettleRequest>().await {
                let (error, sequence) = (Some(not_owner(&address)), request.sequence);
                call.send(&proto::SettleResponse { error, sequence, ..Default::default() });
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client");
    let error = within(client.ack("q", "1")).await.expect_err("it is gone");
    assert_eq!(error.kind(), Some(ErrorKind::MessageGone));
}

/// Reads one request of a call whose connection is cut when ten minutes have passed, by the clock of the runtime.
async fn lost_after_ten_minutes<M: prost::Message + Default>(mut call: crate::fake::Call) {
    call.open(&[]);
    call.read::<M>().await.expect("a request");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(600)).await;
    tokio::time::resume();
    call.cut();
}

#[tokio::test]
async fn a_batch_that_the_broker_may_have_forgotten_is_not_sent_again() {
    let sequences: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noted = sequences.clone();
    let fake = Fake::start(move |mut call| {
        let noted = noted.clone();
        async move {
            if call.connection == 0 {
                return lost_after_ten_minutes::<EnqueueBatchRequest>(call).await;
            }
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                noted.lock().expect("no panic").push(request.sequence);
                call.send(&taken(&request));
            }
        }
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_secs(3600));
    let error = client.enqueue("q", NO_HEADERS, "x").await.expect_err("it may be enqueued, or not");
    assert!(matches!(error, Error::FailedPrecondition(_)), "{error:?}");
    assert_eq!((error.kind(), error.is_retryable()), (Some(ErrorKind::StaleSequence), false));
    within(client.enqueue("q", NO_HEADERS, "y")).await.expect("enqueued");
    assert_eq!(*sequences.lock().expect("no panic"), [2], "and its number is not used again");
}

#[tokio::test]
async fn a_settlement_may_be_sent_again_for_ever() {
    let fake = Fake::start(async |call| match call.connection {
        0 => lost_after_ten_minutes::<proto::SettleRequest>(call).await,
        _ => crate::fake::settle_all(call).await,
    })
    .await;
    let client = Client::connect(&fake.address).expect("a client").with_timeout(Duration::from_secs(3600));
    client.ack("q", "1").await.expect("acked");
}

#[tokio::test]
async fn many_messages_are_sent_in_order_and_each_has_a_result_in_its_place() {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = sent.clone();
    let fake = Fake::start(move |mut call| {
        let noted = noted.clone();
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                let payloads =
                    request.messages.iter().map(|message| String::from_utf8_lossy(&message.payload).into_owned());
                noted.lock().expect("no panic").extend(payloads);
                let result = |message: &proto::EnqueueRequest| match &message.payload[..] {
                    b"bad" => {
                        let error = Some(refusal(3, ErrorKind::PayloadTooLarge));
                        proto::EnqueueResult { error, ..Default::default() }
                    }
                    payload => {
                        let message_id = String::from_utf8_lossy(payload).into_owned();
                        proto::EnqueueResult { message_id, ..Default::default() }
                    }
                };
                let results = request.messages.iter().map(result).collect();
                let sequence = request.sequence;
                call.send(&proto::EnqueueBatchResponse { results, sequence, error: None });
            }
        }
    })
    .await;
    // Most of them wait for room.
    let client = Client::builder([&fake.address]).buffer_bytes(2000).connect().expect("a client");
    let payload = |number: usize| if number == 1234 { "bad".to_owned() } else { number.to_string() };
    let results = within(client.enqueue_many("q", (0..3000).map(|number| OutgoingMessage::new(payload(number))))).await;
    assert_eq!(*sent.lock().expect("no panic"), (0..3000).map(payload).collect::<Vec<_>>());
    for (number, result) in results.into_iter().enumerate() {
        match result {
            Ok(sent) => assert_eq!(sent.id, number.to_string()),
            Err(error) => assert!(number == 1234 && matches!(error, Error::LimitExceeded(_)), "{number}: {error}"),
        }
    }
    assert!(within(client.enqueue_many("q", [])).await.is_empty());
}

#[tokio::test]
async fn a_call_that_is_dropped_at_any_moment_disturbs_no_other() {
    let fake = Fake::start(crate::fake::take_all).await;
    let client = Client::connect(&fake.address).expect("a client");
    for polls in 0..20 {
        let calls = (0..20).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.enqueue("q", NO_HEADERS, "given up").await.map(drop) })
        });
        let calls: Vec<_> = calls.collect();
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        calls.iter().for_each(tokio::task::JoinHandle::abort);
        within(client.enqueue("q", NO_HEADERS, "kept")).await.expect("enqueued");
    }
}

#[tokio::test]
async fn messages_without_bytes_take_room_too() {
    let (batches, mut seen) = mpsc::unbounded_channel();
    let fake = Fake::start(move |mut call| {
        let batches = batches.clone();
        async move {
            call.open(&[]);
            while let Some(request) = call.read::<EnqueueBatchRequest>().await {
                call.send(&taken(&request));
                let _ = batches.send(request.messages.len());
            }
        }
    })
    .await;
    let client = Client::builder([&fake.address]).buffer_bytes(1000).connect().expect("a client");
    for sent in within(client.enqueue_many("q", (0..100).map(|_| OutgoingMessage::default()))).await {
        sent.expect("enqueued");
    }
    while let Ok(size) = seen.try_recv() {
        assert!(size <= 3, "{size}");
    }
}
