//! Enqueueing: concurrent calls travel together, in numbered batches on one stream.
//!
//! A batch whose answer was lost is sent again under its number, and the broker enqueues nothing twice. A batch that
//! everybody gave up keeps its number: its messages were enqueued once, or not at all. One that the broker may not
//! know any more is not sent again, and its callers are told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, string};
use tokio::sync::OwnedSemaphorePermit;

use crate::batch_stream::{Answers, Codec};
use crate::error::{Error, Result};
use crate::outgoing::{Enqueued, OutgoingMessage};
use crate::proto;
use crate::send_window::{Batch, Item};

const MAX_MESSAGES: usize = 1000;
const MAX_BYTES: usize = 1 << 20;

/// The fields of `EnqueueBatchRequest`.
const MESSAGES: u32 = 1;
const PRODUCER_ID: u32 = 2;
const SEQUENCE: u32 = 3;
const BATCH_QUEUE: u32 = 4;

/// One message of one caller.
pub(crate) struct Enqueue {
    pub(crate) queue: Arc<str>,
    pub(crate) message: Arc<OutgoingMessage>,
    /// Room in the buffer of the client, given back with the answer.
    pub(crate) _room: OwnedSemaphorePermit,
}

pub(crate) type EnqueueItem = Item<Enqueue, Enqueued>;

/// Numbers and encodes the batches of one producer, and splits the answers.
pub(crate) struct EnqueueCodec {
    producer_id: String,
    sequence: u64,
}

impl EnqueueCodec {
    pub(crate) fn new(producer_id: String) -> Self {
        Self { producer_id, sequence: 0 }
    }

    fn encode(&self, items: &[EnqueueItem], size: usize) -> Bytes {
        let mut data = BytesMut::with_capacity(size + 256);
        let queue = &items[0].work.queue;
        for item in items {
            // Messages of the first one's queue need not name it.
            let other = if item.work.queue == *queue { "" } else { &item.work.queue };
            let length = string_len(other) + item.work.message.encoded_len();
            encode_key(MESSAGES, WireType::LengthDelimited, &mut data);
            encode_varint(length as u64, &mut data);
            put_string(1, other, &mut data);
            item.work.message.encode(&mut data);
        }
        put_string(PRODUCER_ID, &self.producer_id, &mut data);
        encode_key(SEQUENCE, WireType::Varint, &mut data);
        encode_varint(self.sequence, &mut data);
        put_string(BATCH_QUEUE, queue, &mut data);
        data.freeze()
    }
}

impl Codec for EnqueueCodec {
    type Work = Enqueue;
    type Answer = Enqueued;
    type Response = proto::EnqueueBatchResponse;
    const PATH: &'static str = "/fila.v1.FilaService/EnqueueStream";
    /// Less than the ten minutes for which the broker remembers a producer that is silent.
    const REPEATABLE: Option<Duration> = Some(Duration::from_secs(540));

    fn make(&mut self, gathered: &mut VecDeque<EnqueueItem>) -> Option<Batch<Enqueue, Enqueued>> {
        let (mut items, mut size) = (Vec::new(), 0);
        while let Some(next) = gathered.front() {
            let more = next.work.message.encoded_len() + next.work.queue.len() + 16;
            if next.waits() {
                if !items.is_empty() && (items.len() == MAX_MESSAGES || size + more > MAX_BYTES) {
                    break;
                }
                size += more;
                items.extend(gathered.pop_front());
            } else {
                gathered.pop_front();
            }
        }
        if items.is_empty() {
            return None;
        }
        self.sequence += 1;
        Some(Batch::new(self.encode(&items, size), items, self.sequence))
    }

    fn answers(
        &self,
        batch: &Batch<Enqueue, Enqueued>,
        response: proto::EnqueueBatchResponse,
    ) -> Result<Answers<Enqueued>> {
        batch.check(response.sequence)?;
        if let Some(error) = response.error {
            return Ok(Answers::Refused(Error::refusal(error, "")));
        }
        if response.results.len() != batch.items.len() {
            let text = format!("the broker sent {} results for {}", response.results.len(), batch.items.len());
            return Err(Error::own(Error::Internal, text));
        }
        let answer = |(item, result): (&EnqueueItem, proto::EnqueueResult)| match result.error {
            Some(error) => {
                // The broker has looked at the number: no earlier sending was carried out either.
                item.note_sent(false);
                Err(Error::refusal(error, ""))
            }
            None => Ok(Enqueued { id: result.message_id, duplicate: result.duplicate && !batch.resent }),
        };
        Ok(Answers::Each(batch.items.iter().zip(response.results).map(answer).collect()))
    }
}

fn string_len(text: &str) -> usize {
    if text.is_empty() { 0 } else { 1 + encoded_len_varint(text.len() as u64) + text.len() }
}

fn put_string(tag: u32, text: &str, data: &mut BytesMut) {
    if !text.is_empty() {
        encode_key(tag, WireType::LengthDelimited, data);
        encode_varint(text.len() as u64, data);
        data.put_slice(text.as_bytes());
    }
}

/// The field of a message, as `prost` would write it.
pub(crate) fn put_owned(tag: u32, text: &String, data: &mut BytesMut) {
    string::encode(tag, text, data);
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    type Answer = oneshot::Receiver<Result<Enqueued>>;

    fn item(queue: &str, payload: &[u8]) -> (EnqueueItem, Answer) {
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("free");
        let message = OutgoingMessage::new(payload.to_vec()).header("tenant", "acme").priority(3).dedup_key("k");
        let (reply, answer) = oneshot::channel();
        let work = Enqueue { queue: queue.into(), message: Arc::new(message), _room: room };
        (Item::new(work, reply, Default::default()), answer)
    }

    #[test]
    fn a_batch_is_what_the_generated_code_reads() {
        let (items, _answers): (VecDeque<_>, Vec<_>) = [item("a", b"1"), item("b", b"2")].into_iter().unzip();
        let mut items = items;
        let batch = EnqueueCodec::new("p".to_owned()).make(&mut items).expect("a batch");
        let read = proto::EnqueueBatchRequest::decode(batch.data).expect("readable");
        assert_eq!((read.queue.as_str(), read.sequence, read.producer_id.as_str()), ("a", 1, "p"));
        let queues: Vec<&str> = read.messages.iter().map(|message| message.queue.as_str()).collect();
        assert_eq!(queues, ["", "b"]);
        let message = &read.messages[1];
        assert_eq!((&message.payload[..], message.priority, message.dedup_key.as_str()), (&b"2"[..], Some(3), "k"));
        assert_eq!(message.headers["tenant"], "acme");
    }

    #[test]
    fn a_batch_has_at_most_a_thousand_messages_and_a_mebibyte() {
        let (mut many, _answers): (VecDeque<_>, Vec<_>) = (0..1500).map(|_| item("q", b"x")).unzip();
        let mut codec = EnqueueCodec::new("p".to_owned());
        assert_eq!(codec.make(&mut many).map(|batch| batch.items.len()), Some(1000));
        let large = vec![0; 600 << 10];
        let (mut two, _answers): (VecDeque<_>, Vec<_>) = (0..2).map(|_| item("q", &large)).unzip();
        assert_eq!(codec.make(&mut two).map(|batch| (batch.items.len(), batch.sequence)), Some((1, 2)));
    }

    #[test]
    fn what_nobody_waits_for_is_left_out() {
        let (gone, answer) = item("q", b"gone");
        drop(answer);
        let mut gathered = VecDeque::from([gone]);
        assert!(EnqueueCodec::new("p".to_owned()).make(&mut gathered).is_none() && gathered.is_empty());
    }

    #[test]
    fn one_refusal_does_not_spoil_the_others() {
        let (mut items, _answers): (VecDeque<_>, Vec<_>) = [item("q", b"1"), item("q", b"2")].into_iter().unzip();
        let mut codec = EnqueueCodec::new("p".to_owned());
        let batch = codec.make(&mut items).expect("a batch");
        let refused = proto::Error { code: 5, kind: proto::ErrorKind::QueueNotFound.into(), ..Default::default() };
        let results = vec![
            proto::EnqueueResult { message_id: "id".to_owned(), ..Default::default() },
            proto::EnqueueResult { error: Some(refused), ..Default::default() },
        ];
        let response = proto::EnqueueBatchResponse { sequence: 1, results, error: None };
        let answers = codec.answers(&batch, response).expect("it belongs to the batch");
        let Answers::Each(answers) = answers else { panic!("{answers:?}") };
        assert_eq!(answers[0].as_ref().expect("enqueued").id, "id");
        assert!(matches!(answers[1], Err(Error::QueueNotFound(_))));
    }
}
