//! How a client is set up.

use std::path::PathBuf;
use std::time::Duration;

use crate::addresses::is_address;
use crate::call::LONGEST;
use crate::client::Client;
use crate::error::{Error, Result};
#[cfg(feature = "tls")]
use crate::tls::TlsConfig;

/// Sets up a [`Client`].
///
/// ```no_run
/// # async fn example() -> fila_client::Result<()> {
/// use std::time::Duration;
///
/// let client = fila_client::Client::builder(["broker-1:5555", "broker-2:5555"])
///     .api_key("fila_...")
///     .timeout(Duration::from_secs(10))
///     .connect()?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    pub(crate) addresses: Vec<String>,
    pub(crate) key: Option<KeySource>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) keepalive: (Duration, Duration),
    pub(crate) buffer_bytes: usize,
    pub(crate) max_response_bytes: usize,
}

#[derive(Clone)]
pub(crate) enum KeySource {
    Text(String),
    File(PathBuf),
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => formatter.write_str("Text(..)"),
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
        }
    }
}

impl ClientBuilder {
    pub(crate) fn new(addresses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            addresses: addresses.into_iter().map(Into::into).collect(),
            key: None,
            #[cfg(feature = "tls")]
            tls: None,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            keepalive: (Duration::from_secs(30), Duration::from_secs(10)),
            buffer_bytes: 16 << 20,
            max_response_bytes: 64 << 20,
        }
    }

    /// The API key or token, sent with every call. Without TLS everyone on the path can read it.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(KeySource::Text(key.into()));
        self
    }

    /// A file with the API key. It is read again when it has changed, so that a key is exchanged by replacing the file.
    pub fn api_key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Some(KeySource::File(path.into()));
        self
    }

    /// Encrypts connections.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long a call may take in all, retries included. 30 seconds unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long TCP and TLS may each take to connect. 5 seconds unless set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// After how long a silence the server is asked whether it is there, and how long it may take to answer. 30 and 10
    /// seconds unless set.
    pub fn keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.keepalive = (interval.min(LONGEST), timeout.min(LONGEST));
        self
    }

    /// How many bytes of messages may wait to be enqueued. `enqueue` waits for room beyond it. 16 MiB unless set. A message
    /// counts for 256 bytes more than it has.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// The largest response that is taken. 64 MiB unless set: `max_response_bytes` of [`Client::describe`] says what the
    /// broker may send.
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.max_response_bytes = bytes;
        self
    }

    /// Makes the client. Connections are made when they are needed, so this waits for none.
    ///
    /// Its tasks run on the Tokio runtime in which this is called. Fails for what cannot work: no runtime, a wrong
    /// address, an unreadable file.
    pub fn connect(self) -> Result<Client> {
        if self.addresses.is_empty() {
            return Err(Error::own(Error::InvalidArgument, "an address of the form host:port is needed"));
        }
        if let Some(wrong) = self.addresses.iter().find(|address| !is_address(address)) {
            let text = format!("{wrong:?} is not an address of the form host:port");
            return Err(Error::own(Error::InvalidArgument, text));
        }
        if [self.keepalive.0, self.keepalive.1, self.connect_timeout].contains(&Duration::ZERO) {
            return Err(Error::own(Error::InvalidArgument, "keepalive and connect_timeout are more than nothing"));
        }
        Client::new(self)
    }
}
