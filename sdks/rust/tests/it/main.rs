//! The client beside a fake that misbehaves, and beside a real broker.

mod broker;
mod calls;
mod consuming;
mod ending;
mod fake;
mod hostile;
mod producing;
mod secrets;
mod server;

use std::future::Future;
use std::time::Duration;

/// A guard against tests that hang, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not hang")
}

/// Waits until something is so.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    within(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
