//! Extends the leases of what a consumer was delivered, three times in a visibility timeout.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::call::LONGEST;
use crate::error::{Error, Result};
use crate::link::lock;
use crate::message::Held;
use crate::sent::Sent;
use crate::settle::Action;

const TIMES: u32 = 3;

/// The shortest pause, whatever timeout the broker tells.
const SHORTEST: Duration = Duration::from_millis(10);

/// What a consumer was delivered: prefetched or handed, until it is settled or dropped.
pub(crate) struct Holding {
    held: Mutex<List>,
    count: AtomicUsize,
    /// The count went down to 0.
    emptied: Notify,
    /// The visibility timeout, once the broker has told it.
    timeout: watch::Sender<Option<Duration>>,
}

#[derive(Default)]
struct List {
    messages: Vec<Weak<Held>>,
    /// At this length what has ended is thrown out, so that the list stays as long as what is held.
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 1024;

impl Default for Holding {
    fn default() -> Self {
        let (count, timeout) = (AtomicUsize::new(0), watch::Sender::new(None));
        Self { held: Mutex::default(), count, emptied: Notify::new(), timeout }
    }
}

impl Holding {
    pub(crate) fn note_timeout(&self, timeout: Duration) {
        let timeout = Some(timeout.min(LONGEST));
        self.timeout.send_if_modified(|known| std::mem::replace(known, timeout) != timeout);
    }

    pub(crate) fn add(&self, held: &Arc<Held>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut list = lock(&self.held);
        if list.messages.len() >= list.sweep_at.max(SWEEP_AT_LEAST) {
            list.messages.retain(|held| held.upgrade().is_some_and(|held| !held.is_settled()));
            list.sweep_at = list.messages.len() * 2;
        }
        list.messages.push(Arc::downgrade(held));
    }

    /// One that was added is settled or dropped.
    pub(crate) fn removed(&self) {
        if self.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.emptied.notify_one();
        }
    }

    async fn empty(&self) {
        while self.count.load(Ordering::SeqCst) > 0 {
            self.emptied.notified().await;
        }
    }

    fn live(&self) -> Vec<Arc<Held>> {
        let mut live = Vec::new();
        lock(&self.held).messages.retain(|held| match held.upgrade() {
            Some(held) if !held.is_settled() => {
                live.push(held);
                true
            }
            _ => false,
        });
        live
    }
}

/// Runs until the consumer has ended and holds nothing any more.
pub(crate) async fn extend_leases(holding: Arc<Holding>, ended: CancellationToken) {
    let over = async {
        ended.cancelled().await;
        holding.empty().await;
    };
    tokio::select! {
        () = over => {}
        () = extend_in_turns(&holding) => {}
    }
}

/// A turn begins a third of the timeout after the one before, however long that took: so a lease has two chances.
async fn extend_in_turns(holding: &Holding) {
    let mut told = holding.timeout.subscribe();
    let mut turn = Instant::now();
    loop {
        let pause = told.borrow_and_update().map(|timeout| (timeout / TIMES).max(SHORTEST));
        let Some(pause) = pause else {
            let _ = told.changed().await;
            turn = Instant::now();
            continue;
        };
        tokio::select! {
            _ = told.changed() => continue,
            () = sleep_until(turn + pause) => {}
        }
        turn = Instant::now();
        // What cannot be extended in time is tried again in the next turn, or has ended by then.
        let _ = timeout(pause, extend(holding.live())).await;
    }
}

async fn extend(live: Vec<Arc<Held>>) {
    let submit = |held: Arc<Held>| {
        let extension = held.settlement(Action::Extend { extend_ms: 0 });
        (held.member.settles.submit(extension, Sent::default()), held)
    };
    let answers: Vec<(oneshot::Receiver<Result<()>>, Arc<Held>)> = live.into_iter().map(submit).collect();
    for (answer, held) in answers {
        if let Ok(Err(Error::MessageNotFound(_))) = answer.await {
            held.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timeout_of_nothing_does_not_keep_the_processor_busy() {
        let holding = Holding::default();
        holding.note_timeout(Duration::ZERO);
        // With the clock paused, time goes on only while everything waits.
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = extend_in_turns(&holding) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_without_end_is_bearable() {
        let holding = Holding::default();
        holding.note_timeout(Duration::MAX);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = extend_in_turns(&holding) => {}
        }
    }
}
