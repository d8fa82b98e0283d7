//! What fails too often becomes a dead letter, and goes back when it is mended.

use fila_client::proto::{PeekRequest, QueueConfig};
use fila_client::{Client, Error, NO_HEADERS, Result};

const QUEUE: &str = "example-letters";
const LETTERS: &str = "example-letters.dlq";

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::connect(std::env::var("FILA_ADDR").unwrap_or("localhost:5555".into()))?;
    let config = QueueConfig { max_attempts: Some(2), ..Default::default() };
    match client.create_queue(QUEUE, config).await {
        Err(Error::QueueAlreadyExists(_)) => {}
        created => created?,
    }
    client.enqueue(QUEUE, NO_HEADERS, "broken").await?;

    let mut messages = client.consume(QUEUE)?;
    let mut attempt = 0;
    while attempt < 2
        && let Some(message) = messages.recv().await
    {
        let message = message?;
        attempt = message.attempt_count() + 1;
        println!("attempt {attempt} fails");
        message.nack("cannot be read").await?;
    }

    let request = PeekRequest { queue: LETTERS.into(), payload_bytes: 100, ..Default::default() };
    for message in client.peek(request).await?.messages.into_iter().filter_map(|letter| letter.message) {
        let letter = message.metadata.and_then(|metadata| metadata.dead_letter).unwrap_or_default();
        let (payload, attempts) = (String::from_utf8_lossy(&message.payload), letter.attempts);
        let error = attempts.last().map_or("", |last| &last.error);
        println!("dead letter: {payload}, {} attempts, the last: {error}", attempts.len());
    }

    println!("back in the queue: {}", client.redrive(LETTERS, 0, None).await?);
    if let Some(message) = messages.recv().await {
        let message = message?;
        println!("delivered: {}", String::from_utf8_lossy(message.payload()));
        message.ack().await?;
    }
    messages.stop().await;

    client.delete_queue(QUEUE, true).await?;
    client.close().await;
    Ok(())
}
