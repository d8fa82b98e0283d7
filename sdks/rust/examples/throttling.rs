//! A limit for each provider: who has no tokens waits, and nobody waits behind it.

use fila_client::proto::{HeaderNames, QueueConfig};
use fila_client::{Client, Consumer, Error, Result};

const QUEUE: &str = "example-throttling";

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::connect(std::env::var("FILA_ADDR").unwrap_or("localhost:5555".into()))?;
    // A message with the header "provider: slow" has the throttle key "provider:slow".
    let headers = HeaderNames { names: vec!["provider".into()] };
    let config = QueueConfig { throttle_headers: Some(headers), ..Default::default() };
    match client.create_queue(QUEUE, config).await {
        Err(Error::QueueAlreadyExists(_)) => {}
        created => created?,
    }
    client.set_throttle("provider:slow", "rate=0.01,burst=1").await?;
    println!("provider slow: one message now, the next in 100 seconds");

    for provider in ["slow", "fast"] {
        for number in 1..=3 {
            client.enqueue(QUEUE, [("provider", provider)], format!("{provider}-{number}")).await?;
        }
    }

    let mut messages = client.consume(QUEUE)?;
    println!("delivered: {}", take(&mut messages, 4).await?);
    client.remove_throttle("provider:slow").await?;
    println!("without the limit: {}", take(&mut messages, 2).await?);
    messages.stop().await;

    client.delete_queue(QUEUE, true).await?;
    client.close().await;
    Ok(())
}

async fn take(messages: &mut Consumer, count: usize) -> Result<String> {
    let mut taken = Vec::new();
    while taken.len() < count
        && let Some(message) = messages.recv().await
    {
        let message = message?;
        taken.push(String::from_utf8_lossy(message.payload()).into_owned());
        message.ack().await?;
    }
    Ok(taken.join(" "))
}
