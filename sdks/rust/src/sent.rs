//! What a caller that waits for a stream is told of its request meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::link::lock;

/// Shared by a caller and the stream that has its request.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Noted>);

#[derive(Default)]
struct Noted {
    may_be_done: AtomicBool,
    put_off: Mutex<Option<Error>>,
}

impl Sent {
    /// Whether the request may have been carried out: then nobody can say that it was not.
    pub(crate) fn may_be_done(&self) -> bool {
        self.0.may_be_done.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, may_be_done: bool) {
        self.0.may_be_done.store(may_be_done, Ordering::Relaxed);
    }

    /// The broker refused the request for a while. It is sent again as it was.
    pub(crate) fn put_off(&self, why: &Error) {
        *lock(&self.0.put_off) = Some(why.clone());
    }

    /// Why the request was put off, if it was.
    pub(crate) fn why(&self) -> Option<Error> {
        lock(&self.0.put_off).clone()
    }
}
