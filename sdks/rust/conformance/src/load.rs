//! Operations with many messages.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fila_client::{Client, ConsumeOptions, Error, Message};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use crate::answers::{Outcome, Problem, headers, millis, number, refusal, text};

const LOAD_MS: u64 = 60_000;
const SHOWN_BYTES: usize = 32;

pub(crate) async fn produce(client: &Client, request: &Value) -> Outcome {
    let client = client.with_timeout(millis(request, "timeout_ms", LOAD_MS));
    let (count, size) = (number(request, "count", 0) as usize, number(request, "size", 0) as usize);
    let next = Arc::new(AtomicUsize::new(0));
    let mut producers: JoinSet<Vec<(usize, Result<String, Error>)>> = JoinSet::new();
    let began = Instant::now();
    for _ in 0..number(request, "concurrency", 1) {
        let (client, next, queue) = (client.clone(), next.clone(), text(request, "queue").to_owned());
        let headers = headers(request);
        producers.spawn(async move {
            let mut sent = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return sent;
                }
                let mut payload = format!("{number} ").into_bytes();
                payload.resize(size.max(payload.len()), b'x');
                sent.push((number, client.enqueue(&queue, headers.clone(), payload).await));
            }
        });
    }
    let (mut ids, mut errors) = (vec![Value::Null; count], Vec::new());
    for (number, result) in producers.join_all().await.into_iter().flatten() {
        match result {
            Ok(id) => ids[number] = id.into(),
            Err(error) => errors.push(refusal(&error.into())),
        }
    }
    Ok(json!({"ids": ids, "errors": errors, "seconds": began.elapsed().as_secs_f64()}))
}

pub(crate) async fn work(client: &Client, request: &Value) -> Outcome {
    let client = client.with_timeout(Duration::from_secs(120));
    let count = number(request, "count", 0) as usize;
    let options = ConsumeOptions::new().max_in_flight(number(request, "max_in_flight", 100) as u32);
    let began = Instant::now();
    let consumer = client.consume_with(text(request, "queue"), options)?;
    let stopper = consumer.stopper();
    let consumer = Arc::new(tokio::sync::Mutex::new(consumer));
    let begun = Arc::new(AtomicUsize::new(0));
    let done: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let handler = millis(request, "handler_ms", 0);
    let mut workers: JoinSet<Result<(), Error>> = JoinSet::new();
    for _ in 0..number(request, "concurrency", 1) {
        let (consumer, begun, done) = (consumer.clone(), begun.clone(), done.clone());
        workers.spawn(async move {
            loop {
                let mut consumer = consumer.lock().await;
                if begun.load(Ordering::SeqCst) >= count {
                    return Ok(());
                }
                let Some(message) = consumer.recv().await else { return Ok(()) };
                let message = message?;
                begun.fetch_add(1, Ordering::SeqCst);
                drop(consumer);
                if !handler.is_zero() {
                    sleep(handler).await;
                }
                match message.ack().await {
                    Ok(()) => {
                        done.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((message.id().to_owned(), shown(&message)));
                    }
                    // It will come again.
                    Err(_) => {
                        begun.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            }
        });
    }
    let finished = async {
        while let Some(worker) = workers.join_next().await {
            worker.map_err(|error| Problem::Request(error.to_string()))??;
        }
        Ok::<(), Problem>(())
    };
    let finished = timeout(millis(request, "timeout_ms", LOAD_MS), finished).await;
    workers.shutdown().await;
    stopper.stop().await;
    finished.map_err(|_| Problem::Late)??;
    let done = std::mem::take(&mut *done.lock().unwrap_or_else(PoisonError::into_inner));
    let (ids, payloads): (Vec<String>, Vec<String>) = done.into_iter().unzip();
    Ok(json!({"ids": ids, "payloads": payloads, "seconds": began.elapsed().as_secs_f64()}))
}

fn shown(message: &Message) -> String {
    let payload = message.payload();
    String::from_utf8_lossy(&payload[..payload.len().min(SHOWN_BYTES)]).into_owned()
}

pub(crate) async fn latency(client: &Client, request: &Value) -> Outcome {
    let client = client.with_timeout(Duration::from_secs(60));
    let (queue, count) = (text(request, "queue").to_owned(), number(request, "count", 0) as usize);
    let (rate, size) = (request["rate"].as_f64().unwrap_or(100.0), number(request, "size", 0) as usize);
    let mut consumer = client.consume(&queue)?;
    let began = Instant::now();
    let receiving = tokio::spawn(async move {
        let (mut took, mut acks) = (Vec::with_capacity(count), JoinSet::new());
        while took.len() < count {
            let Some(message) = consumer.recv().await else { break };
            let message = message?;
            let sent: u64 = message.headers().get("sent").and_then(|sent| sent.parse().ok()).unwrap_or_default();
            took.push(began.elapsed().saturating_sub(Duration::from_nanos(sent)));
            acks.spawn(async move { message.ack().await });
        }
        for acked in acks.join_all().await {
            acked?;
        }
        consumer.stop().await;
        Ok::<_, Error>(took)
    });
    let mut sends: JoinSet<Result<String, Error>> = JoinSet::new();
    for number in 0..count {
        sleep_until((began + Duration::from_secs_f64(number as f64 / rate)).into()).await;
        let (client, queue, sent) = (client.clone(), queue.clone(), began.elapsed().as_nanos().to_string());
        sends.spawn(async move { client.enqueue(&queue, [("sent", sent)], vec![0; size]).await });
    }
    for sent in sends.join_all().await {
        sent?;
    }
    let mut took = receiving.await.map_err(|error| Problem::Request(error.to_string()))??;
    took.sort();
    let at = |part: usize| took.get(took.len() * part / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6);
    Ok(json!({"p50_us": at(50), "p99_us": at(99)}))
}

pub(crate) async fn lifecycle(client: &Client, request: &Value) -> Outcome {
    let began = Instant::now();
    let (produced, worked) = tokio::join!(produce(client, request), work(client, request));
    produced?;
    worked?;
    Ok(json!({"seconds": began.elapsed().as_secs_f64()}))
}
