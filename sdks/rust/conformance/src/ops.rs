//! Clients and consumers by name, and the operations on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fila_client::{Client, ConsumeOptions, Consumer, Error, Message, Stopper, TlsConfig, proto};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::answers::{Outcome, Problem, incoming, millis, number, outgoing, payload, settings, text};

/// Of a request that names none.
pub(crate) const DEFAULT_MS: u64 = 5000;

/// A consumer that is read by one request at a time.
struct Held {
    consumer: Arc<tokio::sync::Mutex<Consumer>>,
    stopper: Stopper,
}

#[derive(Default)]
pub(crate) struct Driver {
    clients: Mutex<HashMap<String, Client>>,
    consumers: Mutex<HashMap<String, Held>>,
    held: Mutex<HashMap<String, Arc<Message>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Driver {
    pub(crate) async fn run(&self, request: Value) -> Outcome {
        let request = &request;
        match text(request, "op") {
            "hello" => Ok(json!({
                "sdk": "rust",
                "version": "0.1.0",
                "language": "rust",
                "grpc": "tonic 0.14",
                "debug": cfg!(debug_assertions),
            })),
            "connect" => self.connect(request),
            "close" => self.close(request).await,
            "consume" => self.consume(request),
            "next" => self.next(request).await,
            "stop" => self.stop(request).await,
            "ack" | "nack" | "release" | "reject" | "extend" => self.settle(request).await,
            "resources" => Ok(resources()),
            "cancel_enqueue" => self.cancel_enqueue(request).await,
            "produce" => crate::load::produce(&self.client(request)?, request).await,
            "work" => crate::load::work(&self.client(request)?, request).await,
            "latency" => crate::load::latency(&self.client(request)?, request).await,
            "lifecycle" => crate::load::lifecycle(&self.client(request)?, request).await,
            "enqueue" | "enqueue_many" | "ack_by_id" | "nack_by_id" | "describe" => self.call(request).await,
            _ => self.admin(request).await,
        }
    }

    fn client(&self, request: &Value) -> Result<Client, Problem> {
        let name = request["client"].as_str().unwrap_or("c");
        let client = lock(&self.clients).get(name).cloned();
        let client = client.ok_or_else(|| Problem::Request(format!("there is no client {name:?}")))?;
        Ok(client.with_timeout(millis(request, "timeout_ms", DEFAULT_MS)))
    }

    fn connect(&self, request: &Value) -> Outcome {
        let addresses = request["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut builder = Client::builder(addresses);
        if let Some(key) = request["api_key"].as_str() {
            builder = builder.api_key(key);
        }
        if let Some(given) = request.get("tls").filter(|given| given.is_object()) {
            let mut tls = TlsConfig::new();
            if let Some(ca) = given["ca"].as_str() {
                tls = tls.ca(ca);
            }
            if let (Some(cert), Some(key)) = (given["cert"].as_str(), given["key"].as_str()) {
                tls = tls.identity(cert, key);
            }
            if let Some(name) = given["server_name"].as_str() {
                tls = tls.server_name(name);
            }
            builder = builder.tls(tls);
        }
        lock(&self.clients).insert(request["client"].as_str().unwrap_or("c").to_owned(), builder.connect()?);
        Ok(json!({}))
    }

    /// A closed client stays known, so that later requests of it are refused by the SDK.
    async fn close(&self, request: &Value) -> Outcome {
        self.client(request)?.close().await;
        Ok(json!({}))
    }

    pub(crate) async fn close_all(&self) {
        let clients: Vec<Client> = lock(&self.clients).drain().map(|(_, client)| client).collect();
        for client in clients {
            client.close().await;
        }
    }

    fn consume(&self, request: &Value) -> Outcome {
        // Settlements of its messages end with the time of the request, not with that of the consumer.
        let client = self.client(request)?.with_timeout(Duration::from_secs(120));
        let options = ConsumeOptions::new().max_in_flight(number(request, "max_in_flight", 100) as u32);
        let consumer = client.consume_with(text(request, "queue"), options)?;
        let stopper = consumer.stopper();
        let held = Held { consumer: Arc::new(tokio::sync::Mutex::new(consumer)), stopper };
        lock(&self.consumers).insert(text(request, "consumer").to_owned(), held);
        Ok(json!({}))
    }

    async fn next(&self, request: &Value) -> Outcome {
        let deadline = Instant::now() + millis(request, "timeout_ms", DEFAULT_MS);
        let name = text(request, "consumer");
        let consumer = lock(&self.consumers).get(name).map(|held| held.consumer.clone());
        let consumer = consumer.ok_or_else(|| Problem::Request(format!("there is no consumer {name:?}")))?;
        let mut consumer = consumer.lock().await;
        let mut messages = Vec::new();
        while messages.len() < number(request, "count", 1) as usize {
            match timeout_at(deadline, consumer.recv()).await {
                Ok(Some(message)) => messages.push(Arc::new(message?)),
                Ok(None) | Err(_) => break,
            }
        }
        let shown: Vec<Value> = messages.iter().map(|message| incoming(message)).collect();
        lock(&self.held).extend(messages.into_iter().map(|message| (message.id().to_owned(), message)));
        Ok(json!({"messages": shown}))
    }

    async fn stop(&self, request: &Value) -> Outcome {
        let held = lock(&self.consumers).remove(text(request, "consumer"));
        if let Some(held) = held {
            held.stopper.stop().await;
        }
        Ok(json!({}))
    }

    async fn settle(&self, request: &Value) -> Outcome {
        let id = text(request, "message");
        let message = lock(&self.held).get(id).cloned();
        let message = message.ok_or_else(|| Problem::Request(format!("no message {id:?} is held")))?;
        let settling = async {
            match text(request, "op") {
                "ack" => message.ack().await,
                "nack" => message.nack_after(text(request, "error"), millis(request, "delay_ms", 0)).await,
                "release" => message.release().await,
                "reject" => message.reject(text(request, "error")).await,
                _ => message.extend(millis(request, "extend_ms", 0)).await,
            }
        };
        timeout(millis(request, "timeout_ms", DEFAULT_MS), settling).await.map_err(|_| Problem::Late)??;
        Ok(json!({}))
    }

    async fn call(&self, request: &Value) -> Outcome {
        let (client, queue) = (self.client(request)?, text(request, "queue"));
        match text(request, "op") {
            "enqueue" => {
                let sent = client.enqueue_message(queue, outgoing(request)).await?;
                Ok(json!({"id": sent.id, "duplicate": sent.duplicate}))
            }
            "enqueue_many" => {
                let messages = request["messages"].as_array().into_iter().flatten().map(outgoing);
                let shown = |result: Result<fila_client::Enqueued, Error>| match result {
                    Ok(sent) => json!({"id": sent.id, "duplicate": sent.duplicate}),
                    Err(error) => json!({"error": crate::answers::refusal(&error.into())}),
                };
                let results: Vec<Value> = client.enqueue_many(queue, messages).await.into_iter().map(shown).collect();
                Ok(json!({"results": results}))
            }
            "ack_by_id" => Ok(client.ack(queue, text(request, "message")).await.map(|()| json!({}))?),
            "nack_by_id" => {
                client.nack(queue, text(request, "message"), text(request, "error")).await?;
                Ok(json!({}))
            }
            _ => {
                let found = client.describe().await?;
                let limits = found.limits.unwrap_or_default();
                Ok(json!({"version": found.version, "max_payload_bytes": limits.max_payload_bytes}))
            }
        }
    }

    async fn cancel_enqueue(&self, request: &Value) -> Outcome {
        let client = self.client(request)?.with_timeout(Duration::from_secs(60));
        let sending = client.enqueue(text(request, "queue"), fila_client::NO_HEADERS, payload(request));
        match timeout(millis(request, "after_ms", 0), sending).await {
            Ok(sent) => Ok(json!({"id": sent?})),
            Err(_) => Err(Problem::Cancelled),
        }
    }

    async fn admin(&self, request: &Value) -> Outcome {
        let (client, queue, key) = (self.client(request)?, text(request, "queue"), text(request, "key"));
        Ok(match text(request, "op") {
            "create_queue" => {
                client.create_queue(queue, settings(&request["settings"])).await?;
                json!({})
            }
            "delete_queue" => {
                client.delete_queue(queue, true).await?;
                json!({})
            }
            "list_queues" => {
                let names: Vec<String> = client.list_queues().await?.into_iter().map(|queue| queue.name).collect();
                json!({"queues": names})
            }
            "stats" => stats(&client, queue).await?,
            "set_config" => {
                client.set_config(key, text(request, "value")).await?;
                json!({})
            }
            "get_config" => json!({"value": client.get_config(key).await?}),
            "delete_config" => {
                client.delete_config(key).await?;
                json!({})
            }
            "list_config" => {
                let entries = client.list_config(text(request, "prefix")).await?;
                let entries: HashMap<String, String> =
                    entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
                json!({"entries": entries})
            }
            "explain" => {
                let found = client.explain(queue, request["message"].as_str()).await?;
                let cause = found.reasons.first().map_or("", |reason| reason.code().as_str_name());
                json!({"reason": cause.trim_start_matches("WAIT_CAUSE_")})
            }
            "redrive" => json!({"count": client.redrive(queue, 0, None).await?}),
            "peek" => {
                let limit = number(request, "count", 100) as u32;
                let peek = proto::PeekRequest { queue: queue.to_owned(), limit, ..Default::default() };
                let page = client.peek(peek).await?;
                let ids: Vec<String> =
                    page.messages.into_iter().filter_map(|peeked| Some(peeked.message?.id)).collect();
                json!({"ids": ids})
            }
            unknown => return Err(Problem::UnknownOp(unknown.to_owned())),
        })
    }
}

async fn stats(client: &Client, queue: &str) -> Result<Value, Error> {
    let found = client.queue_stats(queue).await?.summary.unwrap_or_default();
    let dead = match found.dead_letter_queue.as_str() {
        "" => 0,
        dlq => client.queue_stats(dlq).await?.summary.unwrap_or_default().depth,
    };
    Ok(json!({"depth": found.depth, "in_flight": found.in_flight, "dead_letters": dead}))
}

fn resources() -> Value {
    let entries = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    json!({"threads": entries("/proc/self/task"), "tasks": tasks, "handles": entries("/proc/self/fd")})
}
