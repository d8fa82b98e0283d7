//! A key is in no text, whoever asks for it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use fila_client::{Client, NO_HEADERS};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fake::{Fake, refusal, take_all};
use crate::within;

const KEY: &str = "fila_a_key_that_nobody_may_read";

/// Writes everything down that anybody logs, at all levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0.lock().expect("no panic"), "{field}={value:?} ");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_key_is_neither_logged_nor_shown() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let fake = Fake::start(async |call| {
        assert_eq!(call.headers["authorization"], format!("Bearer {KEY}"));
        match call.path.as_str() {
            "EnqueueStream" => take_all(call).await,
            _ => call.refuse(refusal(16, fila_client::ErrorKind::Unauthenticated)),
        }
    })
    .await;
    let builder = Client::builder([&fake.address]).api_key(KEY);
    assert!(!format!("{builder:?}").contains(KEY));
    let client = builder.connect().expect("a client");
    within(client.enqueue("q", NO_HEADERS, "x")).await.expect("enqueued");
    let error = within(client.describe()).await.expect_err("refused");
    assert!(!format!("{client:?} {error:?} {error}").contains(KEY));
    let log = log.0.lock().expect("no panic");
    assert!(log.contains("HEADERS") || log.contains("Headers"), "the frames are logged: {log}");
    assert!(!log.contains(KEY), "{log}");
}
