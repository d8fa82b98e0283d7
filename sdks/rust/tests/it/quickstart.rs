use fila_client::{Client, proto::QueueConfig};

async fn quickstart(address: &str) -> fila_client::Result<()> {
    let client = Client::connect(address)?;
    client.create_queue("orders", QueueConfig::default()).await?;

    // Calls that run at the same time travel together.
    let id = client.enqueue("orders", [("tenant", "acme")], "hello").await?;

    // The consumer connects by itself, and extends leases for as long as messages are held.
    let mut messages = client.consume("orders")?;
    if let Some(message) = messages.recv().await {
        let message = message?;
        assert_eq!(message.id(), id);
        assert_eq!(&message.payload()[..], b"hello");
        message.ack().await?;
    }

    // What was prefetched goes back and costs no attempt.
    messages.stop().await;
    client.close().await;
    Ok(())
}
