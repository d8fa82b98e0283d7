#![doc = include_str!("../README.md")]

mod addresses;
mod admin;
mod backoff;
mod batch_stream;
mod call;
mod checked;
mod client;
mod consume_stream;
mod consumer;
mod error;
mod extension;
mod link;
mod members;
mod message;
mod options;
#[cfg(feature = "otel")]
mod otel;
mod outgoing;
mod prefetch;
mod producer;
mod random;
mod raw_codec;
mod send_window;
mod sent;
mod settle;
mod tasks;
#[cfg(feature = "tls")]
mod tls;

/// The messages of the contract, as generated from its proto files with prost 0.14.
///
/// Later versions add fields and members of enums. Make a message with `..Default::default()`, and give a `match` on an
/// enum a last arm: then such a version changes nothing for you.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod proto {
    include!("generated/fila.v1.rs");
}

pub use client::Client;
pub use consumer::{ConsumeOptions, Consumer, Stopper};
pub use error::{Cause, Error, ErrorKind, Result};
pub use message::{LeaseMessage, Message};
pub use options::ClientBuilder;
pub use outgoing::{Enqueued, MessageId, NO_HEADERS, OutgoingMessage};
#[cfg(feature = "tls")]
pub use tls::TlsConfig;
