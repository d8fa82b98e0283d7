//! Exponential backoff with jitter: how long to wait before the next attempt.

use std::time::Duration;

use crate::random::random_u64;

const FIRST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(1);

/// The longest pause that a broker can ask for: a wrong answer must not hold a stream for hours.
const ASKED_MOST: Duration = Duration::from_secs(30);

/// Doubles from 20 ms to 1 s. Jitter keeps clients from reconnecting at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }

    /// `asked` is how long the broker asked to wait at least.
    pub(crate) fn after(&mut self, asked: Duration) -> Duration {
        self.next_wait().max(asked.min(ASKED_MOST))
    }

    pub(crate) fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(MOST);
        // Between half of it and all of it.
        wait / 2 + (wait / 2).mul_f64((random_u64() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_a_second_and_begins_anew() {
        let mut backoff = Backoff::new();
        for expected in [20, 40, 80, 160, 320, 640, 1000, 1000] {
            let wait = backoff.next_wait().as_secs_f64() * 1000.0;
            assert!(wait >= f64::from(expected) / 2.0 && wait <= f64::from(expected), "{wait} of {expected}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= FIRST);
    }

    #[test]
    fn a_broker_can_ask_for_a_longer_pause_but_not_for_hours() {
        let mut backoff = Backoff::new();
        let asked = [7, 3600].map(|seconds| backoff.after(Duration::from_secs(seconds)));
        assert_eq!(asked, [Duration::from_secs(7), ASKED_MOST]);
        assert!(Backoff::new().after(Duration::ZERO) >= FIRST / 2);
    }
}
