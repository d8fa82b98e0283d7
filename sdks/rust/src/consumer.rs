//! What `consume` returns: the messages of a queue as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::consume_stream::ConsumeStream;
use crate::error::{Error, Result};
use crate::extension::{Holding, extend_leases};
use crate::message::Message;
use crate::prefetch::{Next, Prefetch};

/// How a consumer is set up.
///
/// ```
/// let one_at_a_time = fila_client::ConsumeOptions::new().max_in_flight(1);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ConsumeOptions {
    max_in_flight: u32,
    auto_extend: bool,
}

impl Default for ConsumeOptions {
    fn default() -> Self {
        Self { max_in_flight: 100, auto_extend: true }
    }
}

impl ConsumeOptions {
    /// 100 messages in flight, and leases that are extended.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most messages that are delivered and not settled, prefetched ones included: up to 65,535.
    pub fn max_in_flight(mut self, messages: u32) -> Self {
        self.max_in_flight = messages;
        self
    }

    /// Whether leases are extended for as long as messages are held. They are unless set.
    pub fn auto_extend(mut self, extend: bool) -> Self {
        self.auto_extend = extend;
        self
    }
}

/// The messages of a queue: a [`Stream`] that ends with an error of the broker, or when it is stopped.
///
/// It reconnects by itself. Dropping it stops it; [`Consumer::stop`] also waits for the end.
///
/// ```no_run
/// # async fn example(client: fila_client::Client) -> fila_client::Result<()> {
/// let mut messages = client.consume("orders")?;
/// while let Some(message) = messages.recv().await {
///     let message = message?;
///     match std::str::from_utf8(message.payload()) {
///         Ok(text) => {
///             println!("{text}");
///             message.ack().await?;
///         }
///         Err(error) => message.reject(error.to_string()).await?,
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Consumer {
    client: Client,
    prefetch: Arc<Prefetch>,
    stopper: Stopper,
}

/// Stops a consumer from elsewhere, such as a task that waits for a signal.
///
/// ```no_run
/// # async fn signalled() {}
/// # async fn example(client: fila_client::Client) -> fila_client::Result<()> {
/// let mut messages = client.consume("orders")?;
/// let stopper = messages.stopper();
/// tokio::spawn(async move {
///     signalled().await;
///     stopper.stop().await;
/// });
/// // Ends when it was stopped.
/// while let Some(message) = messages.recv().await {
///     message?.ack().await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl Stopper {
    /// Stops gracefully: what the application was never handed goes back at once and costs no attempt. What it holds stays
    /// its own and can still be settled.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

impl Consumer {
    pub(crate) fn start(client: Client, queue: Arc<str>, options: ConsumeOptions) -> Self {
        let prefetch = Arc::new(Prefetch::new(options.max_in_flight));
        let stopper = Stopper { stop: CancellationToken::new(), stopped: CancellationToken::new() };
        let holding = Arc::new(Holding::default());
        let shared = &client.shared;
        let stream = ConsumeStream {
            queue,
            members: shared.members.finder(),
            prefetch: prefetch.clone(),
            holding: holding.clone(),
            stop: stopper.stop.clone(),
            tasks: shared.tasks.clone(),
        };
        let (tasks, end) = (shared.tasks.clone(), End { prefetch: prefetch.clone(), stopped: stopper.stopped.clone() });
        shared.tasks.spawn(async move {
            let result = tasks.until_closed(stream.run()).await.and_then(std::convert::identity);
            end.prefetch.end(result.err());
        });
        if options.auto_extend {
            let (tasks, stopped) = (shared.tasks.clone(), stopper.stopped.clone());
            shared.tasks.spawn(async move {
                let _ = tasks.until_closed(extend_leases(holding, stopped)).await;
            });
        }
        Self { client, prefetch, stopper }
    }

    /// The next message; `None` when the consumer was stopped. The same as `next` of a stream.
    ///
    /// Dropping the future loses no message.
    pub async fn recv(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Changes how many messages may be delivered and not settled. Nothing that was delivered is taken back.
    pub fn set_max_in_flight(&self, messages: u32) {
        self.prefetch.set_credit(messages);
    }

    /// For stopping it while another task reads from it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Stops gracefully and waits for it, as [`Stopper::stop`].
    pub async fn stop(self) {
        self.stopper.stop().await;
    }
}

/// The task of the stream has ended, in whichever way: also with its runtime.
struct End {
    prefetch: Arc<Prefetch>,
    stopped: CancellationToken,
}

impl Drop for End {
    fn drop(&mut self) {
        self.prefetch.end(Some(Error::closed()));
        self.stopped.cancel();
    }
}

impl Stream for Consumer {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.prefetch.poll(context) {
            Next::Message(delivery) => {
                let message = Message::new(self.client.clone(), delivery.held, delivery.message);
                Poll::Ready(Some(Ok(message)))
            }
            Next::Failed(error) => Poll::Ready(Some(Err(error))),
            Next::Ended => Poll::Ready(None),
            Next::Wait => Poll::Pending,
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stopper.stop.cancel();
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Consumer").finish_non_exhaustive()
    }
}
