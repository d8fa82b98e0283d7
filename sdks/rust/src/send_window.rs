//! Which batch goes onto the wire next. Pure: no stream, no clock.
//!
//! - Batches leave in the order in which they were made and are answered in that order.
//! - At most [`WINDOW`] are in flight, and only two while the last one is small: what arrives meanwhile then travels as
//!   one batch. Otherwise a short stall fills the window with single messages.
//! - When the connection is lost, the batches in flight go first onto the next stream: same bytes, same order.
//! - One that may have been carried out is sent again alone. If the broker has no time for it, it has to come once more
//!   under its number, and that must happen before a higher number gets through.
//! - A batch that nobody waits for any more is not sent again, and its number is never reused. Neither is one that the
//!   broker may not know any more: its callers are told.
//! - A refusal that ends the stream is a batch's own only if that was alone in flight. So after one, batches are sent
//!   one at a time until one is refused alone: that one fails, the others go through.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::sent::Sent;

/// Batches in flight. The broker remembers its last 64 answers to a producer.
pub(crate) const WINDOW: usize = 8;
const SMALL_BYTES: usize = 64 << 10;
const SMALL_WINDOW: usize = 2;

/// What one caller wants done, and where the answer goes. A caller that gives up drops its end of `reply`.
pub(crate) struct Item<W, A> {
    pub(crate) work: W,
    pub(crate) reply: oneshot::Sender<Result<A>>,
    sent: Sent,
    /// It may have been carried out before it came here, by another member.
    pub(crate) sent_before: bool,
}

impl<W, A> Item<W, A> {
    pub(crate) fn new(work: W, reply: oneshot::Sender<Result<A>>, sent: Sent) -> Self {
        let sent_before = sent.may_be_done();
        Self { work, reply, sent, sent_before }
    }

    /// Whether it may have been carried out here: its caller must know when it gives up.
    pub(crate) fn note_sent(&self, here: bool) {
        self.sent.note(here || self.sent_before);
    }

    pub(crate) fn waits(&self) -> bool {
        !self.reply.is_closed()
    }

    pub(crate) fn answer(self, answer: Result<A>) {
        // The caller may have gone meanwhile: then nobody wants the answer.
        let _ = self.reply.send(answer);
    }
}

/// One request on a stream, for several callers.
pub(crate) struct Batch<W, A> {
    pub(crate) data: Bytes,
    pub(crate) items: Vec<Item<W, A>>,
    pub(crate) sequence: u64,
    /// It was sent on a stream that broke, so the broker may have carried it out already.
    pub(crate) resent: bool,
    /// When it was first sent. Unless it was resent, that is when it was last written to a stream.
    sent_at: Option<Instant>,
}

impl<W, A> Batch<W, A> {
    pub(crate) fn new(data: Bytes, items: Vec<Item<W, A>>, sequence: u64) -> Self {
        Self { data, items, sequence, resent: false, sent_at: None }
    }

    /// Answers the callers, in their order.
    pub(crate) fn answer(self, answers: Vec<Result<A>>) {
        for (item, answer) in self.items.into_iter().zip(answers) {
            item.answer(answer);
        }
    }

    /// The broker refused it as a whole: this sending did nothing.
    pub(crate) fn refuse(self, error: &Error) {
        self.note_sent(self.resent);
        self.fail(error);
    }

    pub(crate) fn fail(self, error: &Error) {
        for item in self.items {
            item.answer(Err(error.clone()));
        }
    }

    /// Answers come in order, so another number means that the two sides have lost each other.
    pub(crate) fn check(&self, sequence: u64) -> Result<()> {
        if sequence == self.sequence {
            return Ok(());
        }
        let text = format!("the broker answered request {sequence} instead of {}", self.sequence);
        Err(Error::own(Error::Internal, text))
    }

    fn abandoned(&self) -> bool {
        !self.items.iter().any(Item::waits)
    }

    fn note_sent(&self, sent: bool) {
        for item in &self.items {
            item.note_sent(sent);
        }
    }
}

/// The batches that were made and not yet answered.
pub(crate) struct SendWindow<W, A> {
    in_flight: VecDeque<Batch<W, A>>,
    resend: VecDeque<Batch<W, A>>,
    probing: bool,
}

impl<W, A> SendWindow<W, A> {
    pub(crate) fn new() -> Self {
        Self { in_flight: VecDeque::new(), resend: VecDeque::new(), probing: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.resend.is_empty()
    }

    /// The data to write now: of a batch to send again, else of a new one. `None` when there is none, or no room.
    pub(crate) fn next(&mut self, now: Instant, make: impl FnOnce() -> Option<Batch<W, A>>) -> Option<Bytes> {
        if self.is_empty() {
            self.probing = false;
        }
        if self.in_flight.len() >= self.room() {
            return None;
        }
        let mut batch = self.left_over().or_else(make)?;
        if !batch.resent {
            batch.sent_at = Some(now);
        }
        let data = batch.data.clone();
        batch.note_sent(true);
        self.in_flight.push_back(batch);
        Some(data)
    }

    fn room(&self) -> usize {
        let last = self.in_flight.back();
        let again = [self.resend.front(), last].into_iter().flatten().any(|batch| batch.resent);
        match last {
            _ if self.probing || again => 1,
            Some(last) if last.data.len() < SMALL_BYTES => SMALL_WINDOW,
            _ => WINDOW,
        }
    }

    /// The batch that the next answer belongs to.
    pub(crate) fn answered(&mut self) -> Option<Batch<W, A>> {
        self.in_flight.pop_front()
    }

    /// Takes an answered batch back: it is not done, and has to be sent again.
    pub(crate) fn again(&mut self, batch: Batch<W, A>) {
        self.in_flight.push_front(batch);
    }

    /// The broker has no time now: what was in flight is sent again, and who gives up meanwhile knows why.
    pub(crate) fn put_off(&mut self, why: &Error) {
        self.lost(true);
        for item in self.resend.iter().flat_map(|batch| &batch.items) {
            item.sent.put_off(why);
        }
    }

    /// The connection was lost: what was in flight is sent again. `sent` says whether any of it may have left.
    pub(crate) fn lost(&mut self, sent: bool) {
        while let Some(mut batch) = self.in_flight.pop_back() {
            batch.resent |= sent;
            batch.note_sent(batch.resent);
            self.resend.push_front(batch);
        }
    }

    /// The broker ended the stream with an error. Returns the batch to blame, if that is certain.
    pub(crate) fn refused(&mut self) -> Option<Batch<W, A>> {
        let blamed = if self.in_flight.len() == 1 { self.in_flight.pop_front() } else { None };
        self.probing |= !self.in_flight.is_empty();
        self.lost(true);
        blamed
    }

    /// Fails the batches of earlier streams that were first sent longer ago than `repeatable`.
    pub(crate) fn end_older(&mut self, now: Instant, repeatable: Duration, error: fn() -> Error) {
        let old = |batch: &Batch<W, A>| {
            batch.resent && batch.sent_at.is_some_and(|sent_at| now.duration_since(sent_at) > repeatable)
        };
        for batch in std::mem::take(&mut self.resend) {
            if old(&batch) { batch.fail(&error()) } else { self.resend.push_back(batch) }
        }
    }

    /// Takes all batches, to fail them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Batch<W, A>> + '_ {
        self.in_flight.drain(..).chain(self.resend.drain(..))
    }

    fn left_over(&mut self) -> Option<Batch<W, A>> {
        while let Some(batch) = self.resend.pop_front() {
            if !batch.abandoned() {
                return Some(batch);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reply = oneshot::Receiver<Result<()>>;

    fn batch(sequence: u64, size: usize) -> (Batch<(), ()>, Reply) {
        let (reply, answer) = oneshot::channel();
        let data = Bytes::from(vec![sequence as u8; size]);
        let items = vec![Item::new((), reply, Sent::default())];
        (Batch::new(data, items, sequence), answer)
    }

    fn filled(count: u64, size: usize) -> (SendWindow<(), ()>, Vec<Reply>, usize) {
        let (mut window, mut replies, mut sent) = (SendWindow::new(), Vec::new(), 0);
        for sequence in 1..=count {
            let (made, reply) = batch(sequence, size);
            if window.next(Instant::now(), || Some(made)).is_some() {
                sent += 1;
                replies.push(reply);
            }
        }
        (window, replies, sent)
    }

    #[test]
    fn eight_large_batches_are_in_flight_but_only_two_small_ones() {
        assert_eq!(filled(12, SMALL_BYTES).2, 8);
        assert_eq!(filled(12, 10).2, 2);
    }

    #[test]
    fn after_a_loss_the_same_bytes_go_again_in_order_before_new_ones() {
        let (mut window, _replies, _) = filled(2, SMALL_BYTES);
        window.lost(true);
        let (new, _reply) = batch(3, SMALL_BYTES);
        let mut new = Some(new);
        for (sequence, again) in [(1, true), (2, true), (3, false)] {
            assert_eq!(window.next(Instant::now(), || new.take()).expect("room")[0], sequence);
            assert!(!again || window.next(Instant::now(), || new.take()).is_none(), "it is sent again alone");
            let answered = window.answered().expect("in flight");
            assert_eq!((u64::from(sequence), again), (answered.sequence, answered.resent));
        }
    }

    #[test]
    fn a_caller_knows_whether_its_request_may_have_left() {
        let (made, _reply) = batch(1, 10);
        let sent = made.items[0].sent.clone();
        let (mut window, mut made) = (SendWindow::new(), Some(made));
        let told = Sent::may_be_done;
        window.next(Instant::now(), || made.take()).expect("room");
        assert!(told(&sent), "the wire has it");
        window.lost(false);
        assert!(!told(&sent), "there was no connection");
        window.next(Instant::now(), || None).expect("again");
        window.lost(true);
        window.next(Instant::now(), || None).expect("again");
        window.lost(false);
        assert!(told(&sent), "an earlier attempt may have arrived");
    }

    #[test]
    fn what_nobody_waits_for_is_not_sent_again() {
        let (mut window, replies, _) = filled(2, SMALL_BYTES);
        window.lost(true);
        drop(replies);
        assert!(window.next(Instant::now(), || None).is_none() && window.is_empty());
    }

    #[test]
    fn a_refusal_is_blamed_on_a_batch_that_was_alone() {
        let (mut window, _replies, _) = filled(2, SMALL_BYTES);
        assert!(window.refused().is_none());
        assert_eq!(window.next(Instant::now(), || None).expect("the first again")[0], 1);
        assert!(window.next(Instant::now(), || None).is_none(), "one at a time");
        assert_eq!(window.refused().map(|batch| batch.sequence), Some(1));
        assert_eq!(window.next(Instant::now(), || None).expect("the second again")[0], 2);
    }

    #[test]
    fn what_the_broker_may_have_forgotten_fails_and_is_not_sent_again() {
        let (mut window, mut replies, _) = filled(2, SMALL_BYTES);
        window.lost(true);
        let (minute, sent_at) = (Duration::from_secs(60), Instant::now());
        window.end_older(sent_at, minute, Error::forgotten);
        assert!(replies[0].try_recv().is_err(), "in time");
        // The first one is written once more, which does not make it younger.
        window.next(sent_at + minute, || None).expect("in time");
        window.lost(true);
        window.end_older(sent_at + 2 * minute, minute, Error::forgotten);
        assert!(window.is_empty());
        for mut reply in replies {
            let error = reply.try_recv().expect("an answer").expect_err("failed");
            assert_eq!((error.kind(), error.is_retryable()), (Some(crate::error::ErrorKind::StaleSequence), false));
        }
    }

    #[test]
    fn what_never_left_is_as_new_however_long_it_waits() {
        let (mut window, _replies, _) = filled(1, SMALL_BYTES);
        window.lost(false);
        let later = Instant::now() + Duration::from_secs(3600);
        window.end_older(later, Duration::from_secs(60), Error::forgotten);
        assert!(window.next(later, || None).is_some());
        window.lost(true);
        window.end_older(later, Duration::from_secs(60), Error::forgotten);
        assert!(window.next(later, || None).is_some(), "it is counted from when it left");
    }
}
