//! The connection to one server: made when it is needed, made again at the next address when it is lost.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tonic::metadata::{Ascii, MetadataValue};
#[cfg(feature = "tls")]
use tonic::transport::ClientTlsConfig;
use tonic::transport::Endpoint;

use crate::addresses::Addresses;
use crate::checked::Checked;
use crate::error::{Ended, Error, ErrorKind, Result};
use crate::options::{ClientBuilder, KeySource};
use crate::tasks::Tasks;
#[cfg(feature = "tls")]
use crate::tls::TlsConfig;

/// Locks, also after a panic of another thread: the state behind each lock here is valid between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A channel that calls can be made on.
#[derive(Clone)]
pub(crate) struct Opened {
    number: u64,
    pub(crate) address: Arc<str>,
    pub(crate) grpc: tonic::client::Grpc<Checked>,
}

pub(crate) struct Link {
    options: Arc<ClientBuilder>,
    key: Arc<Key>,
    addresses: Mutex<Addresses>,
    opened: Mutex<Option<Opened>>,
    numbers: AtomicU64,
    /// Why no call gets through now.
    trouble: Mutex<Option<Error>>,
    #[cfg(feature = "tls")]
    last_tls: Mutex<Option<ClientTlsConfig>>,
    tasks: Tasks,
}

impl Link {
    pub(crate) fn new(options: Arc<ClientBuilder>, key: Arc<Key>, addresses: Vec<String>, tasks: Tasks) -> Self {
        Self {
            options,
            key,
            addresses: Mutex::new(Addresses::new(addresses)),
            opened: Mutex::new(None),
            numbers: AtomicU64::new(0),
            trouble: Mutex::new(None),
            #[cfg(feature = "tls")]
            last_tls: Mutex::new(None),
            tasks,
        }
    }

    /// The channel in use. A new one connects with its first call.
    pub(crate) fn open(&self) -> Result<Opened> {
        let mut opened = lock(&self.opened);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let address: Arc<str> = lock(&self.addresses).current().into();
        let channel = Checked(self.endpoint(&address)?.connect_lazy());
        let made = Opened {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            address,
            grpc: tonic::client::Grpc::new(channel).max_decoding_message_size(self.options.max_response_bytes),
        };
        Ok(opened.insert(made).clone())
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint> {
        #[cfg(feature = "tls")]
        let tls = self.options.tls.as_ref();
        #[cfg(feature = "tls")]
        let scheme = if tls.is_some() { "https" } else { "http" };
        #[cfg(not(feature = "tls"))]
        let scheme = "http";
        let (interval, timeout) = self.options.keepalive;
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
            .map_err(|error| Error::own(Error::InvalidArgument, format!("{address}: {error}")))?
            .connect_timeout(self.options.connect_timeout)
            .http2_keep_alive_interval(interval)
            .keep_alive_timeout(timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .tcp_nodelay(true)
            .executor(self.tasks.clone());
        #[cfg(feature = "tls")]
        if let Some(tls) = tls {
            return self.secured(endpoint, tls);
        }
        Ok(endpoint)
    }

    /// While the files cannot be used, because they are being replaced, what was in them before is.
    #[cfg(feature = "tls")]
    fn secured(&self, endpoint: Endpoint, tls: &TlsConfig) -> Result<Endpoint> {
        let mut last = lock(&self.last_tls);
        let loaded = tls.load().and_then(|loaded| {
            let loaded = loaded.timeout(self.options.connect_timeout);
            Ok((with_tls(endpoint.clone(), loaded.clone())?, loaded))
        });
        match (loaded, last.take()) {
            (Ok((endpoint, loaded)), _) => {
                *last = Some(loaded);
                Ok(endpoint)
            }
            (Err(_), Some(good)) => {
                *last = Some(good.clone());
                with_tls(endpoint, good)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// A request with the key of the client.
    pub(crate) fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(value) = self.key.value() {
            request.metadata_mut().insert("authorization", value);
        }
        request
    }

    /// A call on the channel ended so. Decides where the next one goes.
    pub(crate) fn ended(&self, opened: &Opened, ended: &Ended) {
        match ended {
            Ended::Refused(error, _) => match error.kind() {
                Some(ErrorKind::KeyEnded) => self.key.forget(),
                Some(ErrorKind::ShuttingDown) => self.leave(opened),
                _ => *lock(&self.trouble) = None,
            },
            Ended::Lost { error, .. } => {
                tracing::debug!(%error, "connection lost");
                *lock(&self.trouble) = Some(error.clone());
                self.leave(opened);
            }
            Ended::Broken(_) => self.leave(opened),
        }
    }

    /// A call was answered.
    pub(crate) fn works(&self) {
        *lock(&self.trouble) = None;
    }

    /// Whether the last call was lost.
    pub(crate) fn in_trouble(&self) -> bool {
        lock(&self.trouble).is_some()
    }

    /// Why no call gets through now.
    pub(crate) fn trouble(&self) -> Option<Error> {
        lock(&self.trouble).clone()
    }

    /// Calls that are open on the channel stay so; only the next ones go elsewhere.
    fn leave(&self, left: &Opened) {
        let mut opened = lock(&self.opened);
        if opened.as_ref().is_some_and(|opened| opened.number == left.number) {
            *opened = None;
            lock(&self.addresses).leave();
        }
    }

    pub(crate) fn close(&self) {
        *lock(&self.opened) = None;
    }
}

#[cfg(feature = "tls")]
fn with_tls(endpoint: Endpoint, tls: ClientTlsConfig) -> Result<Endpoint> {
    let uri = endpoint.uri().clone();
    endpoint.tls_config(tls).map_err(|error| Error::own(Error::Tls, format!("{uri}: {error}: {}", innermost(&error))))
}

#[cfg(feature = "tls")]
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}

/// The longest key or token that is read from a file.
const MAX_KEY: u64 = 16 << 10;

/// The key of a client, as metadata. A file is read again when it has changed.
pub(crate) struct Key {
    file: Option<PathBuf>,
    value: Mutex<(Option<MetadataValue<Ascii>>, Option<Stamp>)>,
}

/// What says that a file has changed.
type Stamp = (SystemTime, u64);

impl Key {
    pub(crate) fn new(source: Option<KeySource>) -> Result<Self> {
        let (file, value) = match source {
            None => (None, (None, None)),
            Some(KeySource::Text(text)) => (None, (Some(bearer(&text)?), None)),
            Some(KeySource::File(path)) => {
                let (value, stamp) = read(&path)?;
                (Some(path), (Some(value), Some(stamp)))
            }
        };
        Ok(Self { file, value: Mutex::new(value) })
    }

    /// What a call sends now. While the file cannot be read, that is what was in it before.
    fn value(&self) -> Option<MetadataValue<Ascii>> {
        let mut value = lock(&self.value);
        if let Some(path) = &self.file
            && let Ok(found) = stamp(path)
            && value.1 != Some(found)
            && let Ok((read, stamp)) = read(path)
        {
            *value = (Some(read), Some(stamp));
        }
        value.0.clone()
    }

    /// The key has ended: the next call reads the file, whether it has changed or not.
    fn forget(&self) {
        lock(&self.value).1 = None;
    }
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let found = std::fs::metadata(path)?;
    Ok((found.modified()?, found.len()))
}

fn read(path: &Path) -> Result<(MetadataValue<Ascii>, Stamp)> {
    let reading = || {
        let stamp = stamp(path)?;
        let mut text = String::new();
        std::fs::File::open(path)?.take(MAX_KEY).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>((text, stamp))
    };
    let (text, stamp) = reading().map_err(|error| {
        Error::own(Error::InvalidArgument, format!("cannot read the key in {}: {error}", path.display()))
    })?;
    Ok((bearer(&text)?, stamp))
}

fn bearer(text: &str) -> Result<MetadataValue<Ascii>> {
    let key = text.trim();
    let invalid = || Error::own(Error::InvalidArgument, "an API key is one line of printable ASCII text");
    if key.is_empty() || !key.bytes().all(|sign| sign.is_ascii_graphic()) {
        return Err(invalid());
    }
    let mut value = MetadataValue::try_from(format!("Bearer {key}")).map_err(|_| invalid())?;
    value.set_sensitive(true);
    Ok(value)
}
