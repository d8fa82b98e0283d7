//! Operations: queues, runtime configuration, throttles, dead letters, explanations.
//!
//! Settings and answers are the messages of the contract, in [`crate::proto`].

use crate::call::Again;
use crate::client::Client;
use crate::error::Result;
use crate::proto::{self, MessageFilter, QueueConfig};

macro_rules! path {
    ($name:literal) => {
        concat!("/fila.v1.FilaAdmin/", $name)
    };
}

/// The prefix of configuration keys that are limits of throttle keys.
const THROTTLE: &str = "throttle.";

/// ```no_run
/// # async fn example(client: fila_client::Client) -> fila_client::Result<()> {
/// use fila_client::proto::{PeekRequest, QueueConfig};
///
/// let config = QueueConfig { max_attempts: Some(5), ..Default::default() };
/// client.create_queue("orders", config).await?;
/// client.set_throttle("provider:aws", "rate=50,burst=100").await?;
///
/// let request = PeekRequest { queue: "orders.dlq".into(), ..Default::default() };
/// for peeked in client.peek(request).await?.messages {
///     println!("{peeked:?}");
/// }
/// client.redrive("orders.dlq", 0, None).await?;
/// # Ok(()) }
/// ```
impl Client {
    /// Creates a queue and its dead-letter queue, `<name>.dlq`. Settings that are absent take the broker's defaults.
    pub async fn create_queue(&self, name: &str, config: QueueConfig) -> Result<()> {
        let request = proto::CreateQueueRequest { name: name.to_owned(), config: Some(config), parts: 0 };
        let _: proto::CreateQueueResponse = self.call(path!("CreateQueue"), name, request, Again::No).await?;
        Ok(())
    }

    /// Changes the settings that are present, and returns all of them.
    pub async fn update_queue(&self, queue: &str, config: QueueConfig) -> Result<QueueConfig> {
        let request = proto::UpdateQueueRequest { queue: queue.to_owned(), config: Some(config) };
        let answer: proto::UpdateQueueResponse = self.call(path!("UpdateQueue"), queue, request, Again::Yes).await?;
        Ok(answer.config.unwrap_or_default())
    }

    /// Removes a queue, its dead-letter queue and all their messages. Returns how many these were. Without `force` a queue
    /// that has dead letters stays.
    pub async fn delete_queue(&self, queue: &str, force: bool) -> Result<u64> {
        let request = proto::DeleteQueueRequest { queue: queue.to_owned(), force };
        let answer: proto::DeleteQueueResponse = self.call(path!("DeleteQueue"), queue, request, Again::No).await?;
        Ok(answer.messages_deleted)
    }

    /// Stops delivery from a queue until it is resumed.
    pub async fn pause_queue(&self, queue: &str) -> Result<()> {
        let request = proto::PauseQueueRequest { queue: queue.to_owned() };
        let _: proto::PauseQueueResponse = self.call(path!("PauseQueue"), queue, request, Again::Yes).await?;
        Ok(())
    }

    /// Delivery from a paused queue goes on.
    pub async fn resume_queue(&self, queue: &str) -> Result<()> {
        let request = proto::ResumeQueueRequest { queue: queue.to_owned() };
        let _: proto::ResumeQueueResponse = self.call(path!("ResumeQueue"), queue, request, Again::Yes).await?;
        Ok(())
    }

    /// All queues with their figures, ordered by name.
    pub async fn list_queues(&self) -> Result<Vec<proto::QueueSummary>> {
        let (mut found, mut cursor, deadline) = (Vec::new(), String::new(), self.deadline());
        loop {
            let request = proto::ListQueuesRequest { limit: 0, cursor };
            let page: proto::ListQueuesResponse =
                self.call_until(deadline, path!("ListQueues"), "", request, Again::Yes).await?;
            found.extend(page.queues);
            cursor = page.cursor;
            if cursor.is_empty() {
                return Ok(found);
            }
        }
    }

    /// The figures of a queue: its summary, settings, fairness keys, throttles, consumers.
    pub async fn queue_stats(&self, queue: &str) -> Result<proto::GetStatsResponse> {
        let request = proto::GetStatsRequest { queue: queue.to_owned(), ..Default::default() };
        self.call(path!("GetStats"), queue, request, Again::Yes).await
    }

    /// Sets an entry of the runtime configuration.
    pub async fn set_config(&self, key: &str, value: &str) -> Result<()> {
        let request = proto::SetConfigRequest { key: key.to_owned(), value: value.to_owned() };
        let _: proto::SetConfigResponse = self.call(path!("SetConfig"), "", request, Again::Yes).await?;
        Ok(())
    }

    /// The value of an entry. [`Error::ConfigNotFound`](crate::Error::ConfigNotFound) when it is not set.
    pub async fn get_config(&self, key: &str) -> Result<String> {
        let request = proto::GetConfigRequest { key: key.to_owned() };
        let answer: proto::GetConfigResponse = self.call(path!("GetConfig"), "", request, Again::Yes).await?;
        Ok(answer.value)
    }

    /// All entries whose keys begin with a prefix, ordered by key.
    pub async fn list_config(&self, prefix: &str) -> Result<Vec<proto::ConfigEntry>> {
        let (mut found, mut cursor, deadline) = (Vec::new(), String::new(), self.deadline());
        loop {
            let request = proto::ListConfigRequest { prefix: prefix.to_owned(), limit: 0, cursor };
            let page: proto::ListConfigResponse =
                self.call_until(deadline, path!("ListConfig"), "", request, Again::Yes).await?;
            found.extend(page.entries);
            cursor = page.cursor;
            if cursor.is_empty() {
                return Ok(found);
            }
        }
    }

    /// Removes an entry. Returns whether it was there.
    pub async fn delete_config(&self, key: &str) -> Result<bool> {
        let request = proto::DeleteConfigRequest { key: key.to_owned() };
        let answer: proto::DeleteConfigResponse = self.call(path!("DeleteConfig"), "", request, Again::Yes).await?;
        Ok(answer.existed)
    }

    /// Limits a throttle key, for example `"provider:aws"` to `"rate=50,burst=100"`.
    pub async fn set_throttle(&self, key: &str, limit: &str) -> Result<()> {
        self.set_config(&format!("{THROTTLE}{key}"), limit).await
    }

    /// Removes the limit of a throttle key. Returns whether there was one.
    pub async fn remove_throttle(&self, key: &str) -> Result<bool> {
        self.delete_config(&format!("{THROTTLE}{key}")).await
    }

    /// Looks at messages without consuming them, a page at a time.
    pub async fn peek(&self, request: proto::PeekRequest) -> Result<proto::PeekResponse> {
        let queue = request.queue.clone();
        self.call(path!("Peek"), &queue, request, Again::Yes).await
    }

    /// Moves messages of a dead-letter queue back to the queue they came from. Returns how many. 0 for `count` means all.
    ///
    /// It is done in steps, and the timeout of the client is that of each step. After an error some may have been moved.
    pub async fn redrive(&self, dlq: &str, count: u64, filter: Option<MessageFilter>) -> Result<u64> {
        let (mut moved, mut cursor) = (0_u64, String::new());
        loop {
            let request = proto::RedriveRequest {
                dlq_queue: dlq.to_owned(),
                count: count.saturating_sub(moved),
                filter: filter.clone(),
                bounded: true,
                cursor,
                r#final: count > 0,
                ..Default::default()
            };
            let answer: proto::RedriveResponse = self.call(path!("Redrive"), dlq, request, again(count)).await?;
            moved = moved.saturating_add(answer.redriven);
            cursor = answer.cursor;
            if cursor.is_empty() || (count > 0 && moved >= count) {
                return Ok(moved);
            }
        }
    }

    /// Removes messages of a dead-letter queue for good. Returns how many. 0 for `count` means all.
    ///
    /// It is done in steps, and the timeout of the client is that of each step. After an error some may be gone.
    pub async fn purge(&self, dlq: &str, count: u64, filter: Option<MessageFilter>) -> Result<u64> {
        let (mut removed, mut cursor) = (0_u64, String::new());
        loop {
            let request = proto::PurgeRequest {
                queue: dlq.to_owned(),
                count: count.saturating_sub(removed),
                filter: filter.clone(),
                bounded: true,
                cursor,
                r#final: count > 0,
                ..Default::default()
            };
            let answer: proto::PurgeResponse = self.call(path!("Purge"), dlq, request, again(count)).await?;
            removed = removed.saturating_add(answer.purged);
            cursor = answer.cursor;
            if cursor.is_empty() || (count > 0 && removed >= count) {
                return Ok(removed);
            }
        }
    }

    /// Why a message waits, and when it will be delivered. Without an id: the next one of the queue.
    pub async fn explain(&self, queue: &str, message_id: Option<&str>) -> Result<proto::ExplainResponse> {
        let subject = message_id.map(|id| proto::explain_request::Subject::MessageId(id.to_owned()));
        let request = proto::ExplainRequest { queue: queue.to_owned(), subject };
        self.call(path!("Explain"), queue, request, Again::Yes).await
    }
}

/// A step that is sent again goes on with what is left: that harms nothing if all are meant, and may else be too many.
fn again(count: u64) -> Again {
    if count == 0 { Again::Yes } else { Again::No }
}
