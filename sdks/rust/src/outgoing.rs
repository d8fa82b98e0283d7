//! What is enqueued, and what comes of it.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, string};

use crate::producer::put_owned;

/// The id of a message: a UUIDv7 as text.
pub type MessageId = String;

/// For a message without headers: `client.enqueue("orders", NO_HEADERS, "hello")`.
pub const NO_HEADERS: [(&str, &str); 0] = [];

/// A message that was enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enqueued {
    /// The id of the message, or of the earlier one with the same dedup key.
    pub id: MessageId,
    /// Nothing was enqueued now: an earlier message had the same dedup key.
    pub duplicate: bool,
}

/// A message to enqueue.
///
/// ```
/// use std::time::Duration;
/// use fila_client::OutgoingMessage;
///
/// let message = OutgoingMessage::new("hello").header("tenant", "acme").delay(Duration::from_secs(5)).priority(1);
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct OutgoingMessage {
    headers: Vec<(String, String)>,
    payload: Bytes,
    delay_ms: u64,
    priority: Option<u8>,
    dedup_key: String,
}

/// The fields of `EnqueueRequest`.
const HEADERS: u32 = 2;
const PAYLOAD: u32 = 3;
const DELAY_MS: u32 = 4;
const PRIORITY: u32 = 5;
const DEDUP_KEY: u32 = 6;

impl OutgoingMessage {
    /// A message without headers.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }

    /// Adds a header. A second one of the same name replaces the first.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set_header(name.into(), value.into());
        self
    }

    /// Adds headers.
    pub fn headers(mut self, headers: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        for (name, value) in headers {
            self.set_header(name.into(), value.into());
        }
        self
    }

    /// The message is not delivered before this time has passed.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = millis(delay).unsigned_abs();
        self
    }

    /// 0 is the most urgent, 5 the default. Orders messages inside one fairness key.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// A second message with this key is not enqueued within the queue's dedup window.
    pub fn dedup_key(mut self, key: impl Into<String>) -> Self {
        self.dedup_key = key.into();
        self
    }

    pub(crate) fn set_header(&mut self, name: String, value: String) {
        match self.headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.headers.push((name, value)),
        }
    }

    #[cfg(feature = "otel")]
    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    #[cfg(all(test, feature = "otel"))]
    pub(crate) fn into_headers(self) -> std::collections::HashMap<String, String> {
        self.headers.into_iter().collect()
    }

    /// Of the encoded fields, all but the queue.
    pub(crate) fn encoded_len(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| delimited(entry_len(name, value))).sum();
        let payload = if self.payload.is_empty() { 0 } else { delimited(self.payload.len()) };
        let delay = if self.delay_ms == 0 { 0 } else { 1 + encoded_len_varint(self.delay_ms) };
        let priority = self.priority.map_or(0, |priority| 1 + encoded_len_varint(u64::from(priority)));
        let key = if self.dedup_key.is_empty() { 0 } else { delimited(self.dedup_key.len()) };
        headers + payload + delay + priority + key
    }

    /// Written by hand, so that neither a map nor a copy of the payload has to be made.
    pub(crate) fn encode(&self, data: &mut BytesMut) {
        for (name, value) in &self.headers {
            encode_key(HEADERS, WireType::LengthDelimited, data);
            encode_varint(entry_len(name, value) as u64, data);
            put_owned(1, name, data);
            put_owned(2, value, data);
        }
        if !self.payload.is_empty() {
            encode_key(PAYLOAD, WireType::LengthDelimited, data);
            encode_varint(self.payload.len() as u64, data);
            data.put_slice(&self.payload);
        }
        if self.delay_ms > 0 {
            encode_key(DELAY_MS, WireType::Varint, data);
            encode_varint(self.delay_ms, data);
        }
        if let Some(priority) = self.priority {
            encode_key(PRIORITY, WireType::Varint, data);
            encode_varint(u64::from(priority), data);
        }
        if !self.dedup_key.is_empty() {
            put_owned(DEDUP_KEY, &self.dedup_key, data);
        }
    }
}

/// Rounded up: the shortest time is not none.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn entry_len(name: &String, value: &String) -> usize {
    string::encoded_len(1, name) + string::encoded_len(2, value)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::proto;

    #[test]
    fn the_length_is_that_of_what_is_written() {
        let message = OutgoingMessage::new(vec![7; 300])
            .header("", "")
            .header("ключ", "x".repeat(200))
            .delay(Duration::from_millis(1 << 40))
            .priority(255)
            .dedup_key("d");
        for message in [message, OutgoingMessage::default()] {
            let mut data = BytesMut::new();
            message.encode(&mut data);
            assert_eq!(data.len(), message.encoded_len());
            let read = proto::EnqueueRequest::decode(data).expect("readable");
            assert_eq!((read.payload, read.delay_ms as u64), (message.payload, message.delay_ms));
            assert_eq!(read.headers, message.headers.into_iter().collect());
        }
    }

    #[test]
    fn the_shortest_time_is_a_millisecond_and_the_longest_fits() {
        let told = [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(7), Duration::MAX].map(millis);
        assert_eq!(told, [0, 1, 7, i64::MAX]);
    }

    #[test]
    fn a_header_has_one_value() {
        let message = OutgoingMessage::new("x").header("a", "1").headers([("a", "2")]);
        assert_eq!(message.headers, [("a".to_owned(), "2".to_owned())]);
    }
}
