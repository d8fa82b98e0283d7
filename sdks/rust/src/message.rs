//! A message that a consumer was handed, and what can be done with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::extension::Holding;
use crate::members::Member;
use crate::outgoing::millis;
use crate::proto;
use crate::settle::{Action, Settlement};

/// The name that the specification gives [`Message`].
pub type LeaseMessage = Message;

/// A message that was delivered, under a lease that is extended for as long as this value lives and is not settled.
///
/// A message that is dropped without being settled is delivered again when its lease ends. A settlement whose future is
/// dropped was done once, or not at all; the lease goes on being extended until that is certain.
///
/// ```no_run
/// # async fn work(_: &[u8]) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn example(message: fila_client::Message) -> fila_client::Result<()> {
/// use std::time::Duration;
///
/// match work(message.payload()).await {
///     Ok(()) => message.ack().await,
///     Err(error) if message.attempt_count() < 3 => message.nack_after(error.to_string(), Duration::from_secs(5)).await,
///     Err(error) => message.reject(error.to_string()).await,
/// }
/// # }
/// ```
#[must_use = "a message that is not settled is delivered again"]
pub struct Message {
    client: Client,
    held: Arc<Held>,
    headers: HashMap<String, String>,
    payload: Bytes,
    metadata: proto::MessageMetadata,
    enqueued_at: Option<SystemTime>,
}

/// What the extension of leases and the message share.
pub(crate) struct Held {
    pub(crate) queue: Arc<str>,
    pub(crate) id: Arc<str>,
    pub(crate) lease_id: Arc<str>,
    pub(crate) member: Arc<Member>,
    holding: Arc<Holding>,
    settled: AtomicBool,
}

impl Held {
    /// From here on its lease is extended, until it is settled or dropped.
    pub(crate) fn hold(
        holding: &Arc<Holding>,
        queue: Arc<str>,
        id: &str,
        lease_id: Arc<str>,
        member: Arc<Member>,
    ) -> Arc<Self> {
        let settled = AtomicBool::new(false);
        let held = Arc::new(Self { queue, id: id.into(), lease_id, member, holding: holding.clone(), settled });
        holding.add(&held);
        held
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// Its lease is extended no more.
    pub(crate) fn settle(&self) {
        if !self.settled.swap(true, Ordering::Relaxed) {
            self.holding.removed();
        }
    }

    pub(crate) fn settlement(&self, action: Action) -> Settlement {
        Settlement { queue: self.queue.clone(), lease_id: self.lease_id.clone(), message_id: self.id.clone(), action }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.settle();
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Message")
            .field("id", &self.held.id)
            .field("queue", &self.held.queue)
            .field("attempt_count", &self.metadata.attempt_count)
            .finish_non_exhaustive()
    }
}

impl Message {
    pub(crate) fn new(client: Client, held: Arc<Held>, message: proto::Message) -> Self {
        let enqueued_at = message.timestamps.and_then(|times| times.enqueued_at);
        Self {
            client,
            held,
            headers: message.headers,
            payload: message.payload,
            metadata: message.metadata.unwrap_or_default(),
            enqueued_at: enqueued_at.and_then(|at| SystemTime::try_from(at).ok()),
        }
    }

    /// The id: a UUIDv7 as text.
    pub fn id(&self) -> &str {
        &self.held.id
    }

    /// The queue that delivered it.
    pub fn queue(&self) -> &str {
        &self.held.queue
    }

    /// The lease under which it was delivered.
    pub fn lease_id(&self) -> &str {
        &self.held.lease_id
    }

    /// The headers that its producer gave it.
    pub fn headers(&self) -> &HashMap<String, String> {
        &self.headers
    }

    /// What its producer sent.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The key by which it is scheduled.
    pub fn fairness_key(&self) -> &str {
        &self.metadata.fairness_key
    }

    /// How many attempts failed before this delivery.
    pub fn attempt_count(&self) -> u32 {
        self.metadata.attempt_count
    }

    /// When it was enqueued.
    pub fn enqueued_at(&self) -> Option<SystemTime> {
        self.enqueued_at
    }

    /// Everything that the broker says of it: weight, throttle keys, priority, why it is a dead letter.
    pub fn metadata(&self) -> &proto::MessageMetadata {
        &self.metadata
    }

    /// Removes the message for good.
    pub async fn ack(&self) -> Result<()> {
        self.end(Action::Ack).await
    }

    /// The attempt failed: the message goes back to its queue, after the delay that the queue is set up with.
    pub async fn nack(&self, error: impl Into<String>) -> Result<()> {
        self.nack_after(error, Duration::ZERO).await
    }

    /// As [`Message::nack`], with a delay. Zero means the delay of the queue.
    pub async fn nack_after(&self, error: impl Into<String>, delay: Duration) -> Result<()> {
        self.end(Action::Nack { error: error.into(), delay_ms: millis(delay) }).await
    }

    /// Gives the message back: nothing failed, and no attempt is counted.
    pub async fn release(&self) -> Result<()> {
        self.end(Action::Release).await
    }

    /// Sends the message to the dead-letter queue.
    pub async fn reject(&self, error: impl Into<String>) -> Result<()> {
        self.end(Action::Reject { error: error.into() }).await
    }

    /// The lease ends this long from now, and is not extended by itself any more. Zero means the visibility timeout of
    /// the queue, and goes on with extending.
    pub async fn extend(&self, time: Duration) -> Result<()> {
        if !time.is_zero() {
            self.held.settle();
        }
        self.settle(Action::Extend { extend_ms: millis(time) }).await
    }

    /// The trace that the producer was in. Make it the parent of the span in which the message is worked on.
    #[cfg(feature = "otel")]
    pub fn trace_context(&self) -> opentelemetry::Context {
        crate::otel::extract(&self.headers)
    }

    /// Until it is certain that the message is settled, its lease is extended: also when this is given up or fails.
    async fn end(&self, action: Action) -> Result<()> {
        let ended = self.settle(action).await;
        if matches!(ended, Ok(()) | Err(Error::MessageNotFound(_))) {
            self.held.settle();
        }
        ended
    }

    async fn settle(&self, action: Action) -> Result<()> {
        self.client.settle(self.held.settlement(action), Some(self.held.member.clone())).await
    }
}
