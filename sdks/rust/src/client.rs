//! The client: enqueues, consumes and settles.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::call::Again;
use crate::consumer::{ConsumeOptions, Consumer};
use crate::error::{Error, Result};
use crate::link::Key;
use crate::members::{Member, Members};
use crate::options::ClientBuilder;
use crate::outgoing::{Enqueued, MessageId, OutgoingMessage};
use crate::producer::Enqueue;
use crate::proto;
use crate::sent::Sent;
use crate::settle::{Action, Settlement};
use crate::tasks::Tasks;

/// What a message on its way takes in memory besides its bytes, about: small ones count for it.
const OVERHEAD: usize = 256;

/// A client of one broker or cluster. Clones share connections and are cheap.
///
/// Every call ends at the latest after the timeout of the client ([`Client::with_timeout`] changes it for some calls).
/// Dropping a future gives its call up: what it asked for was done once, or not at all.
///
/// ```no_run
/// # async fn example() -> fila_client::Result<()> {
/// use std::time::Duration;
/// use fila_client::{Client, NO_HEADERS};
///
/// let client = Client::connect("127.0.0.1:5555")?;
/// let id = client.enqueue("orders", [("tenant", "acme")], "hello").await?;
/// // For calls that must end sooner.
/// let hurried = client.with_timeout(Duration::from_millis(200));
/// hurried.enqueue("orders", NO_HEADERS, "quick").await?;
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) timeout: Duration,
}

pub(crate) struct Shared {
    pub(crate) members: Arc<Members>,
    pub(crate) tasks: Tasks,
    /// Bytes of messages that may still be taken over.
    room: Arc<Semaphore>,
    room_bytes: usize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tasks.end();
        self.members.close();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Client {
    /// Sets up a client of one server, or of several addresses of a cluster, each as `host:port`.
    pub fn builder(addresses: impl IntoIterator<Item = impl Into<String>>) -> ClientBuilder {
        ClientBuilder::new(addresses)
    }

    /// A client of one server with the defaults. Connections are made when they are needed.
    pub fn connect(address: impl Into<String>) -> Result<Self> {
        Self::builder([address]).connect()
    }

    pub(crate) fn new(mut options: ClientBuilder) -> Result<Self> {
        let key = Key::new(options.key.take())?;
        let tasks = Tasks::new()?;
        let room_bytes = options.buffer_bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let timeout = options.timeout;
        let members = Arc::new(Members::new(options, key, tasks.clone()));
        // Finds out whether its files can be used. It connects with its first call.
        members.of("").link.open()?;
        let room = Arc::new(Semaphore::new(room_bytes));
        Ok(Self { shared: Arc::new(Shared { members, tasks, room, room_bytes }), timeout })
    }

    /// The same client, with another timeout.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { shared: self.shared.clone(), timeout }
    }

    /// Enqueues a message, and returns its id when it is durable.
    ///
    /// Calls that run at the same time travel together. A call whose answer is lost with its connection is sent again, and
    /// enqueued once.
    pub async fn enqueue(
        &self,
        queue: &str,
        headers: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
        payload: impl Into<bytes::Bytes>,
    ) -> Result<MessageId> {
        let message = OutgoingMessage::new(payload).headers(headers);
        Ok(self.enqueue_message(queue, message).await?.id)
    }

    /// As [`Client::enqueue`], with everything that a message can have.
    pub async fn enqueue_message(&self, queue: &str, message: OutgoingMessage) -> Result<Enqueued> {
        let call = Enqueueing::new(queue.into(), message);
        self.enqueued(call, self.shared.members.of(queue), None, self.deadline()).await
    }

    /// Enqueues messages, in order. Each succeeds or fails by itself: there is one result for each, in the same order.
    pub async fn enqueue_many(
        &self,
        queue: &str,
        messages: impl IntoIterator<Item = OutgoingMessage>,
    ) -> Vec<Result<Enqueued>> {
        let (queue, deadline): (Arc<str>, Instant) = (queue.into(), self.deadline());
        let member = self.shared.members.of(&queue);
        let calls: Vec<Enqueueing> =
            messages.into_iter().map(|message| Enqueueing::new(queue.clone(), message)).collect();
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            // One after the other: a message that waits for room is not overtaken by the next one.
            let submitted = timeout_at(deadline, self.submit(&call, &member)).await.ok();
            results.push(self.enqueued(call, member.clone(), submitted, deadline));
        }
        join_all(results).await
    }

    /// Hands a message over when there is room for it.
    async fn submit(&self, call: &Enqueueing, member: &Member) -> Result<oneshot::Receiver<Result<Enqueued>>> {
        let bytes = (call.message.encoded_len() + call.queue.len() + OVERHEAD).min(self.shared.room_bytes) as u32;
        let room = self.shared.room.clone().acquire_many_owned(bytes).await.map_err(|_| Error::closed())?;
        let work = Enqueue { queue: call.queue.clone(), message: call.message.clone(), _room: room };
        Ok(member.producer.submit(work, call.sent.clone()))
    }

    /// What comes of a message that was `submitted` to a member, or else is now.
    async fn enqueued(
        &self,
        call: Enqueueing,
        member: Arc<Member>,
        mut submitted: Option<Result<oneshot::Receiver<Result<Enqueued>>>>,
        deadline: Instant,
    ) -> Result<Enqueued> {
        let call = &call;
        let submit = |member: Arc<Member>| {
            let submitted = submitted.take();
            async move {
                let answer = match submitted {
                    Some(answer) => answer?,
                    None => self.submit(call, &member).await?,
                };
                answer.await.map_err(|_| Error::closed())?
            }
        };
        self.through(&call.queue, member, &call.sent, deadline, submit).await
    }

    /// The messages of a queue, as a stream. It connects by itself, again and again.
    pub fn consume(&self, queue: &str) -> Result<Consumer> {
        self.consume_with(queue, ConsumeOptions::default())
    }

    /// As [`Client::consume`], with options.
    pub fn consume_with(&self, queue: &str, options: ConsumeOptions) -> Result<Consumer> {
        if self.shared.tasks.are_closed() {
            return Err(Error::closed());
        }
        Ok(Consumer::start(self.clone(), queue.into(), options))
    }

    /// The name that the specification gives [`Client::consume`].
    pub fn lease(&self, queue: &str) -> Result<Consumer> {
        self.consume(queue)
    }

    /// Removes a delivered message for good. [`Message::ack`](crate::Message::ack) is safer: it knows the lease.
    pub async fn ack(&self, queue: &str, message_id: &str) -> Result<()> {
        self.settle(by_id(queue, message_id, Action::Ack), None).await
    }

    /// Returns a delivered message to its queue; the attempt has failed with this error.
    pub async fn nack(&self, queue: &str, message_id: &str, error: impl Into<String>) -> Result<()> {
        let action = Action::Nack { error: error.into(), delay_ms: 0 };
        self.settle(by_id(queue, message_id, action), None).await
    }

    /// `member` is the one that delivered the message.
    pub(crate) async fn settle(&self, settlement: Settlement, member: Option<Arc<Member>>) -> Result<()> {
        let queue = settlement.queue.clone();
        let member = member.unwrap_or_else(|| self.shared.members.of(&queue));
        let sent = Sent::default();
        let submit = |member: Arc<Member>| {
            let answer = member.settles.submit(settlement.clone(), sent.clone());
            async move { answer.await.map_err(|_| Error::closed())? }
        };
        self.through(&queue, member, &sent, self.deadline(), submit).await
    }

    /// What the server is: version, features, limits.
    pub async fn describe(&self) -> Result<proto::DescribeResponse> {
        self.call("/fila.v1.FilaService/Describe", "", proto::DescribeRequest {}, Again::Yes).await
    }

    /// Ends all calls with [`Error::Closed`], ends all consumers, and waits until all tasks and connections are gone: for
    /// about a second if a server does not read.
    ///
    /// What consumers were handed and have not settled goes back at once and counts an attempt: stop them first
    /// ([`Consumer::stop`]) to let them finish.
    pub async fn close(&self) {
        self.shared.tasks.end();
        self.shared.members.close();
        self.shared.tasks.ended().await;
    }
}

/// A message on its way.
struct Enqueueing {
    queue: Arc<str>,
    message: Arc<OutgoingMessage>,
    sent: Sent,
}

impl Enqueueing {
    fn new(queue: Arc<str>, message: OutgoingMessage) -> Self {
        Self { queue, message: Arc::new(traced(message)), sent: Sent::default() }
    }
}

fn by_id(queue: &str, message_id: &str, action: Action) -> Settlement {
    Settlement { queue: queue.into(), lease_id: "".into(), message_id: message_id.into(), action }
}

#[cfg(feature = "otel")]
fn traced(mut message: OutgoingMessage) -> OutgoingMessage {
    crate::otel::inject(&mut message);
    message
}

#[cfg(not(feature = "otel"))]
fn traced(message: OutgoingMessage) -> OutgoingMessage {
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send<T: Send>(_: &T) {}
    fn is_send_and_sync<T: Send + Sync>() {}

    #[test]
    fn everything_can_be_used_in_tasks_and_threads() {
        is_send_and_sync::<Client>();
        is_send_and_sync::<Consumer>();
        is_send_and_sync::<crate::Message>();
        is_send_and_sync::<Error>();
        let futures = |client: &Client| {
            is_send(&client.enqueue("q", crate::NO_HEADERS, "x"));
            is_send(&client.enqueue_many("q", []));
            is_send(&client.ack("q", "id"));
            is_send(&client.list_queues());
            is_send(&client.close());
        };
        // Only its types matter.
        let _: &dyn Fn(&Client) = &futures;
    }
}
