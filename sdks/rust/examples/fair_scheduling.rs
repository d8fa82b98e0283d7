//! One queue for many tenants: a flood of one does not delay the others.

use fila_client::proto::QueueConfig;
use fila_client::{Client, Error, OutgoingMessage, Result};

const QUEUE: &str = "example-fairness";

/// The broker asks this script for the fairness key of each message. The setting `fairness_header` would do too.
const SCRIPT: &str = "
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant }
end
";

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::connect(std::env::var("FILA_ADDR").unwrap_or("localhost:5555".into()))?;
    let config = QueueConfig { on_enqueue: Some(SCRIPT.into()), quantum: Some(1), ..Default::default() };
    match client.create_queue(QUEUE, config).await {
        Err(Error::QueueAlreadyExists(_)) => {}
        created => created?,
    }

    let tenants = std::iter::repeat_n("bulk", 100).chain(["acme"; 2]);
    let messages = tenants.map(|tenant| OutgoingMessage::default().header("tenant", tenant));
    for result in client.enqueue_many(QUEUE, messages).await {
        result?;
    }
    println!("enqueued 100 messages of bulk, then 2 of acme");

    let mut delivered = Vec::new();
    let mut messages = client.consume(QUEUE)?;
    while delivered.len() < 6
        && let Some(message) = messages.recv().await
    {
        let message = message?;
        delivered.push(message.fairness_key().to_owned());
        message.ack().await?;
    }
    messages.stop().await;
    println!("delivered: {}", delivered.join(" "));

    client.delete_queue(QUEUE, true).await?;
    client.close().await;
    Ok(())
}
