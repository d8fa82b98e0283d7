//! Random numbers of the standard library: enough for jitter and for names that nobody guesses twice.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Each `RandomState` has keys that come from the operating system.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A name for one start of one producer.
pub(crate) fn random_name() -> String {
    // Two states of one thread differ by one in their keys: the hash is one-way, so the halves are unrelated.
    format!("{:016x}{:016x}", random_u64(), random_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_fit_the_contract() {
        let (first, second) = (random_name(), random_name());
        assert!(first != second && first.len() == 32);
    }
}
