//! The messages that were delivered and not yet handed to the application. Between the task of the stream and the
//! application; pure but for wakers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use tokio::sync::Notify;

use crate::error::Error;
use crate::link::lock;
use crate::message::Held;
use crate::proto;

pub(crate) struct Delivery {
    pub(crate) message: proto::Message,
    pub(crate) held: Arc<Held>,
}

impl Delivery {
    /// It may kill its consumer, so the broker must know that the application has it before it does.
    fn is_isolated(&self) -> bool {
        self.message.metadata.as_ref().is_some_and(|metadata| metadata.isolation != 0)
    }
}

/// What the application gets when it asks.
pub(crate) enum Next {
    Message(Box<Delivery>),
    Failed(Error),
    Ended,
    Wait,
}

/// What the stream tells the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) handed: u64,
    pub(crate) credit: u32,
    /// `handed` counts a message that the application gets only after [`Prefetch::confirm`].
    pub(crate) isolated: bool,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Delivery>,
    /// How many messages of the present stream the application was handed.
    handed: u64,
    credit: u32,
    /// The largest credit of the present stream.
    most: u32,
    /// The application asks for an isolated message, which is at the front.
    asks_isolated: bool,
    confirmed: bool,
    ended: bool,
    error: Option<Error>,
    waker: Option<Waker>,
}

pub(crate) struct Prefetch {
    state: Mutex<State>,
    /// There is something to report.
    pub(crate) changed: Notify,
}

impl Prefetch {
    pub(crate) fn new(credit: u32) -> Self {
        Self { state: Mutex::new(State { credit, ..State::default() }), changed: Notify::new() }
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Next {
        let mut state = lock(&self.state);
        while let Some(front) = state.waiting.front() {
            if front.held.is_settled() {
                // Its lease has ended: it comes again, here or elsewhere.
                state.waiting.pop_front();
                state.handed += 1;
                (state.asks_isolated, state.confirmed) = (false, false);
                continue;
            }
            if front.is_isolated() && !state.confirmed {
                state.asks_isolated = true;
                state.waker = Some(context.waker().clone());
                self.changed.notify_one();
                return Next::Wait;
            }
            let delivery = state.waiting.pop_front().map(Box::new);
            state.handed += 1;
            (state.asks_isolated, state.confirmed) = (false, false);
            self.changed.notify_one();
            return delivery.map_or(Next::Wait, Next::Message);
        }
        if let Some(error) = state.error.take() {
            return Next::Failed(error);
        }
        if state.ended {
            return Next::Ended;
        }
        state.waker = Some(context.waker().clone());
        Next::Wait
    }

    /// A new stream begins: its count is its own.
    pub(crate) fn begin(&self) -> u32 {
        let mut state = lock(&self.state);
        (state.handed, state.most) = (0, state.credit);
        state.credit
    }

    /// Returns false, and takes nothing, when there would be more than the credit allows.
    pub(crate) fn deliver(&self, deliveries: Vec<Delivery>) -> bool {
        let mut state = lock(&self.state);
        if state.waiting.len() + deliveries.len() > state.most as usize {
            return false;
        }
        state.waiting.extend(deliveries);
        wake(state);
        true
    }

    pub(crate) fn report(&self) -> Report {
        let state = lock(&self.state);
        let handed = state.handed + u64::from(state.asks_isolated);
        Report { handed, credit: state.credit, isolated: state.asks_isolated && !state.confirmed }
    }

    /// The broker knows that the application gets the isolated message.
    pub(crate) fn confirm(&self) {
        let mut state = lock(&self.state);
        state.confirmed = state.asks_isolated;
        wake(state);
    }

    pub(crate) fn set_credit(&self, credit: u32) {
        let mut state = lock(&self.state);
        (state.credit, state.most) = (credit, state.most.max(credit));
        self.changed.notify_one();
    }

    /// The stream is over: what was not handed is no longer ours.
    pub(crate) fn take_back(&self) -> Vec<Delivery> {
        let mut state = lock(&self.state);
        (state.asks_isolated, state.confirmed) = (false, false);
        state.waiting.drain(..).collect()
    }

    /// The application gets no more messages, and this error, if there is one. Returns the message that was reported as
    /// handed, but was not.
    pub(crate) fn end(&self, error: Option<Error>) -> Option<Delivery> {
        let mut state = lock(&self.state);
        let reported = if state.asks_isolated { state.waiting.pop_front() } else { None };
        (state.asks_isolated, state.confirmed) = (false, false);
        let left = std::mem::take(&mut state.waiting);
        if !state.ended {
            state.error = error;
        }
        state.ended = true;
        wake(state);
        drop(left);
        reported
    }
}

/// Wakes the application, after the lock: a waker is code of others.
fn wake(mut state: std::sync::MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
