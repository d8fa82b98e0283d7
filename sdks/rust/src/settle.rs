//! Settling: concurrent acks, nacks and extensions travel together, in batches on one stream.
//!
//! An answer names only the failures, by message. So that it is clear whose failure it is, no batch has the same message
//! twice: the second request waits for the next batch.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;

use crate::batch_stream::{Answers, Codec};
use crate::error::{Error, Result};
use crate::proto::{self, AckGroup, ErrorKind, ExtendGroup, NackRequest, SettleRequest};
use crate::send_window::{Batch, Item};

const MAX_SETTLEMENTS: usize = 5000;
/// Texts of errors can be long, and what is too large is refused as a whole.
const MAX_BYTES: usize = 1 << 20;

/// How far back a group of the same lease is looked for: messages of a few leases are settled side by side.
const LOOK_BACK: usize = 8;

/// What is done with a message.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Ack,
    Nack { error: String, delay_ms: i64 },
    Release,
    Reject { error: String },
    Extend { extend_ms: i64 },
}

/// One settlement of one message. Without a lease id it is under whichever lease it is.
#[derive(Debug, Clone)]
pub(crate) struct Settlement {
    pub(crate) queue: Arc<str>,
    pub(crate) lease_id: Arc<str>,
    pub(crate) message_id: Arc<str>,
    pub(crate) action: Action,
}

pub(crate) type SettleItem = Item<Settlement, ()>;

/// Merges settlements into requests, and splits the answers.
#[derive(Default)]
pub(crate) struct SettleCodec {
    sequence: u64,
}

impl Codec for SettleCodec {
    type Work = Settlement;
    type Answer = ();
    type Response = proto::SettleResponse;
    const PATH: &'static str = "/fila.v1.FilaService/Settle";
    /// A settlement names its lease.
    const REPEATABLE: Option<Duration> = None;

    fn make(&mut self, gathered: &mut VecDeque<SettleItem>) -> Option<Batch<Settlement, ()>> {
        let (mut items, mut size): (Vec<SettleItem>, usize) = (Vec::new(), 0);
        let mut named = HashSet::new();
        while let Some(next) = gathered.front() {
            if next.waits() {
                let more = next.work.bytes();
                let full = items.len() == MAX_SETTLEMENTS || (!items.is_empty() && size + more > MAX_BYTES);
                if full || !named.insert(next.work.message_id.clone()) {
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
        let data = request(&items, self.sequence).encode_to_vec().into();
        Some(Batch::new(data, items, self.sequence))
    }

    fn answers(&self, batch: &Batch<Settlement, ()>, response: proto::SettleResponse) -> Result<Answers<()>> {
        batch.check(response.sequence)?;
        if let Some(error) = response.error {
            return Ok(Answers::Refused(Error::refusal(error, "")));
        }
        let mut failures: HashMap<String, proto::Error> = response
            .failures
            .into_iter()
            .map(|failure| (failure.message_id, failure.error.unwrap_or_default()))
            .collect();
        let answer = |item: &SettleItem| match failures.remove(&*item.work.message_id) {
            // An ack that is sent again and finds its message gone for good was carried out the first time.
            Some(error)
                if (batch.resent || item.sent_before)
                    && matches!(item.work.action, Action::Ack)
                    && error.kind == i32::from(ErrorKind::MessageGone) =>
            {
                Ok(())
            }
            Some(error) => {
                item.note_sent(batch.resent);
                Err(Error::refusal(error, ""))
            }
            None => Ok(()),
        };
        let answers = batch.items.iter().map(answer).collect();
        match failures.into_keys().next() {
            // Whatever it belongs to has failed, so nothing here can be told as done.
            Some(unknown) => {
                let text = format!("the broker names message {unknown:?}, which nobody asked to settle");
                Err(Error::own(Error::Internal, text))
            }
            None => Ok(Answers::Each(answers)),
        }
    }
}

impl Settlement {
    /// About as much as it adds to a request.
    fn bytes(&self) -> usize {
        let error = match &self.action {
            Action::Nack { error, .. } | Action::Reject { error } => error.len(),
            Action::Ack | Action::Release | Action::Extend { .. } => 0,
        };
        self.queue.len() + self.lease_id.len() + self.message_id.len() + error + 32
    }
}

fn request(items: &[SettleItem], sequence: u64) -> SettleRequest {
    let mut made = SettleRequest { sequence, ..SettleRequest::default() };
    for Item { work, .. } in items {
        match &work.action {
            Action::Ack => add_ack(&mut made.acks, work),
            Action::Extend { extend_ms } => add_extension(&mut made.extends, work, *extend_ms),
            Action::Nack { error, delay_ms } => {
                made.nacks.push(NackRequest { error: error.clone(), delay_ms: *delay_ms, ..nack(work) });
            }
            Action::Release => made.nacks.push(NackRequest { release: true, ..nack(work) }),
            Action::Reject { error } => {
                made.nacks.push(NackRequest { error: error.clone(), dead_letter: true, ..nack(work) });
            }
        }
    }
    made
}

fn nack(work: &Settlement) -> NackRequest {
    NackRequest {
        queue: work.queue.to_string(),
        message_id: work.message_id.to_string(),
        lease_id: work.lease_id.to_string(),
        ..NackRequest::default()
    }
}

fn add_ack(groups: &mut Vec<AckGroup>, work: &Settlement) {
    let same = |group: &&mut AckGroup| *group.lease_id == *work.lease_id && *group.queue == *work.queue;
    match groups.iter_mut().rev().take(LOOK_BACK).find(same) {
        Some(group) => group.message_ids.push(work.message_id.to_string()),
        None => groups.push(AckGroup {
            queue: work.queue.to_string(),
            lease_id: work.lease_id.to_string(),
            message_ids: vec![work.message_id.to_string()],
        }),
    }
}

fn add_extension(groups: &mut Vec<ExtendGroup>, work: &Settlement, extend_ms: i64) {
    let same = |group: &&mut ExtendGroup| {
        *group.lease_id == *work.lease_id && *group.queue == *work.queue && group.extend_ms == extend_ms
    };
    match groups.iter_mut().rev().take(LOOK_BACK).find(same) {
        Some(group) => group.message_ids.push(work.message_id.to_string()),
        None => groups.push(ExtendGroup {
            queue: work.queue.to_string(),
            lease_id: work.lease_id.to_string(),
            message_ids: vec![work.message_id.to_string()],
            extend_ms,
        }),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    type Answer = oneshot::Receiver<Result<()>>;

    fn item(message: &str, lease: &str, action: Action) -> (SettleItem, Answer) {
        let (reply, answer) = oneshot::channel();
        let work = Settlement { queue: "q".into(), lease_id: lease.into(), message_id: message.into(), action };
        (Item::new(work, reply, Default::default()), answer)
    }

    fn failure(message: &str, kind: ErrorKind) -> proto::SettleFailure {
        let error = proto::Error { code: 5, kind: kind.into(), ..Default::default() };
        proto::SettleFailure { queue: "q".to_owned(), message_id: message.to_owned(), error: Some(error) }
    }

    #[test]
    fn acks_of_one_lease_are_one_group() {
        let (items, _answers): (Vec<_>, Vec<_>) =
            [item("1", "a", Action::Ack), item("2", "b", Action::Ack), item("3", "a", Action::Ack)].into_iter().unzip();
        let groups: Vec<usize> = request(&items, 1).acks.iter().map(|group| group.message_ids.len()).collect();
        assert_eq!(groups, [2, 1]);
    }

    #[test]
    fn a_message_is_named_once_in_a_batch() {
        let (mut gathered, _answers): (VecDeque<_>, Vec<_>) =
            [item("1", "a", Action::Extend { extend_ms: 0 }), item("1", "a", Action::Ack)].into_iter().unzip();
        let mut codec = SettleCodec::default();
        assert_eq!(codec.make(&mut gathered).map(|batch| batch.items.len()), Some(1));
        assert_eq!(codec.make(&mut gathered).map(|batch| batch.sequence), Some(2));
    }

    #[test]
    fn long_errors_do_not_make_a_request_too_large() {
        let nack = |number: i32| {
            let action = Action::Nack { error: "x".repeat(300 << 10), delay_ms: 0 };
            item(&number.to_string(), "a", action)
        };
        let (mut gathered, _answers): (VecDeque<_>, Vec<_>) = (0..10).map(nack).unzip();
        let mut codec = SettleCodec::default();
        let batch = codec.make(&mut gathered).expect("a batch");
        assert!(batch.data.len() <= MAX_BYTES && batch.items.len() == 3, "{} bytes", batch.data.len());
        let (huge, _answer) = item("1", "a", Action::Reject { error: "x".repeat(2 << 20) });
        assert!(codec.make(&mut VecDeque::from([huge])).is_some(), "a single one goes alone");
    }

    fn outcome(action: Action, resent: bool, failure: proto::SettleFailure) -> Result<Answers<()>> {
        let (made, _answer) = item("1", "a", action);
        let mut codec = SettleCodec::default();
        let mut batch = codec.make(&mut VecDeque::from([made])).expect("a batch");
        batch.resent = resent;
        codec.answers(&batch, proto::SettleResponse { sequence: 1, failures: vec![failure], error: None })
    }

    #[test]
    fn only_an_ack_that_is_sent_again_and_finds_its_message_gone_was_done() {
        let done = |action, resent, kind| {
            let answers = outcome(action, resent, failure("1", kind)).expect("it belongs to the batch");
            matches!(answers, Answers::Each(each) if each[0].is_ok())
        };
        assert!(done(Action::Ack, true, ErrorKind::MessageGone));
        assert!(!done(Action::Ack, false, ErrorKind::MessageGone));
        assert!(!done(Action::Ack, true, ErrorKind::LeaseEnded));
        assert!(!done(Action::Release, true, ErrorKind::MessageGone));
    }

    #[test]
    fn a_failure_that_belongs_to_nobody_is_not_taken_for_a_success() {
        assert!(matches!(outcome(Action::Ack, false, failure("2", ErrorKind::LeaseEnded)), Err(Error::Internal(_))));
    }
}
