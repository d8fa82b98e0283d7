//! The addresses of one server or cluster: which to use now, and which next.

use http::uri::Authority;

/// The one in use, and the others that take over in turn when it cannot be reached.
#[derive(Debug)]
pub(crate) struct Addresses {
    known: Vec<String>,
    current: usize,
}

impl Addresses {
    /// `known` is not empty.
    pub(crate) fn new(known: Vec<String>) -> Self {
        Self { known, current: 0 }
    }

    pub(crate) fn current(&self) -> &str {
        &self.known[self.current]
    }

    /// The one in use cannot be reached: the next one takes over.
    pub(crate) fn leave(&mut self) {
        self.current = (self.current + 1) % self.known.len();
    }
}

/// The longest name of a host, its port, and brackets.
const LONGEST: usize = 262;

/// Whether a text is `host:port`. What a server names is used for connections, so it is looked at first.
pub(crate) fn is_address(text: &str) -> bool {
    text.len() <= LONGEST
        && text.parse::<Authority>().is_ok_and(|address| {
            !address.host().is_empty()
                && address.port_u16().is_some_and(|port| port > 0)
                && !text.contains(['@', ',', '/', '?', '#'])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_take_over_in_turn() {
        let mut addresses = Addresses::new(vec!["a:1".into(), "b:2".into()]);
        assert_eq!(addresses.current(), "a:1");
        addresses.leave();
        assert_eq!(addresses.current(), "b:2");
        addresses.leave();
        assert_eq!(addresses.current(), "a:1");
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert!(is_address("broker.example:5555") && is_address("[::1]:80"));
        for wrong in
            ["", "broker", ":80", "a:0", "a:70000", "a:", "a b:1", "http://a:1", "user@a:1", "a:1,b:1", "::1:80"]
        {
            assert!(!is_address(wrong), "{wrong}");
        }
        assert!(!is_address(&format!("{}:80", "a".repeat(1000))), "a server cannot make the client keep long names");
    }
}
