//! The errors of the SDK, and the one table that makes them of the kinds of the contract.

use std::time::Duration;

use prost::Message as _;
use tonic::{Code, Status};

use crate::proto;

pub use crate::proto::ErrorKind;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
///
/// The variant says what a program can do about it; [`Error::kind`] is the exact kind that the broker named.
///
/// ```
/// use fila_client::{Client, Error, NO_HEADERS};
///
/// async fn enqueue(client: &Client) -> fila_client::Result<()> {
///     match client.enqueue("orders", NO_HEADERS, "hello").await {
///         Err(Error::QueueNotFound(_)) => client.create_queue("orders", Default::default()).await,
///         Err(error) if error.is_retryable() => Ok(println!("later: {error}")),
///         other => other.map(drop),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The queue does not exist.
    QueueNotFound(Box<Cause>),
    /// A queue of that name exists.
    QueueAlreadyExists(Box<Cause>),
    /// No message is held under that lease: it ended, was settled before, or never existed.
    MessageNotFound(Box<Cause>),
    /// The runtime configuration has no such entry.
    ConfigNotFound(Box<Cause>),
    /// An argument is not valid.
    InvalidArgument(Box<Cause>),
    /// The request is valid, but not in the present state.
    FailedPrecondition(Box<Cause>),
    /// Another reader or producer has taken over.
    Fenced(Box<Cause>),
    /// Something is larger than its limit, or there are as many as there may be.
    LimitExceeded(Box<Cause>),
    /// Backpressure: the broker takes no more now. Nothing was done.
    Overloaded(Box<Cause>),
    /// The queue holds as much as it may.
    QueueFull(Box<Cause>),
    /// The broker cannot be reached, or is stopping. A call that must not be sent twice, such as the one that creates a
    /// queue, may have been done; any other was not.
    Unavailable(Box<Cause>),
    /// There is no secure connection: the text says which check failed.
    Tls(Box<Cause>),
    /// No answer in time. The request may or may not have been carried out.
    DeadlineExceeded(Box<Cause>),
    /// The broker does not accept the caller, or does not allow the call.
    PermissionDenied(Box<Cause>),
    /// The broker failed, or sent an unexpected answer.
    Internal(Box<Cause>),
    /// The client was closed. What was on its way may have been done.
    Closed(Box<Cause>),
}

/// What is known of an error.
#[derive(Debug, Clone, Default)]
pub struct Cause {
    kind: Option<ErrorKind>,
    message: String,
    retryable: bool,
    retry_after: Duration,
    owner: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.cause().message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The kind of the contract that it is. `None` when the contract has no kind for it, or when this version does not
    /// know it.
    pub fn kind(&self) -> Option<ErrorKind> {
        self.cause().kind
    }

    /// Whether the same request may succeed later, though nobody changes anything.
    pub fn is_retryable(&self) -> bool {
        self.cause().retryable
    }

    /// How long to wait at least before the request is sent again. Zero means that the caller chooses.
    pub fn retry_after(&self) -> Duration {
        self.cause().retry_after
    }

    /// The member of the cluster that has the queue, when the broker named one.
    pub fn owner(&self) -> Option<&str> {
        Some(self.cause().owner.as_str()).filter(|owner| !owner.is_empty())
    }

    /// Whether it leads to another member.
    pub(crate) fn names_owner(&self) -> bool {
        self.kind() == Some(ErrorKind::NotOwner) && self.owner().is_some()
    }

    fn cause(&self) -> &Cause {
        match self {
            Self::QueueNotFound(cause)
            | Self::QueueAlreadyExists(cause)
            | Self::MessageNotFound(cause)
            | Self::ConfigNotFound(cause)
            | Self::InvalidArgument(cause)
            | Self::FailedPrecondition(cause)
            | Self::Fenced(cause)
            | Self::LimitExceeded(cause)
            | Self::Overloaded(cause)
            | Self::QueueFull(cause)
            | Self::Unavailable(cause)
            | Self::Tls(cause)
            | Self::DeadlineExceeded(cause)
            | Self::PermissionDenied(cause)
            | Self::Internal(cause)
            | Self::Closed(cause) => cause,
        }
    }

    /// An error of the SDK itself.
    pub(crate) fn own(make: fn(Box<Cause>) -> Self, message: impl Into<String>) -> Self {
        make(Box::new(Cause { message: message.into(), ..Cause::default() }))
    }

    /// There is no connection now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable(Box::new(Cause { message: message.into(), retryable: true, ..Cause::default() }))
    }

    pub(crate) fn closed() -> Self {
        Self::own(Self::Closed, "the client is closed")
    }

    /// For a batch that the broker may not know any more: sent again, it could be carried out twice.
    pub(crate) fn forgotten() -> Self {
        Self::FailedPrecondition(Box::new(Cause {
            kind: Some(ErrorKind::StaleSequence),
            message: "the answer was lost, and the broker may not know the request any more".to_owned(),
            ..Cause::default()
        }))
    }

    /// The error for a refusal of the contract. `text` is for one that has none of its own.
    pub(crate) fn refusal(error: proto::Error, text: &str) -> Self {
        let kind = ErrorKind::try_from(error.kind).ok().filter(|kind| *kind != ErrorKind::Unspecified);
        let code = Code::from_i32(error.code);
        let message = if error.message.is_empty() { text.to_owned() } else { error.message };
        let message = if message.is_empty() { code.description().to_owned() } else { message };
        let cause = Box::new(Cause {
            kind,
            message,
            retryable: error.retryable,
            retry_after: Duration::from_millis(u64::from(error.retry_after_ms)),
            owner: error.owner,
        });
        kind.map_or_else(|| by_code(code), by_kind)(cause)
    }
}

fn by_kind(kind: ErrorKind) -> fn(Box<Cause>) -> Error {
    use ErrorKind as Kind;
    match kind {
        Kind::QueueNotFound => Error::QueueNotFound,
        Kind::QueueAlreadyExists => Error::QueueAlreadyExists,
        Kind::MessageNotFound | Kind::LeaseEnded | Kind::MessageGone => Error::MessageNotFound,
        Kind::ConfigNotFound => Error::ConfigNotFound,
        Kind::InvalidArgument => Error::InvalidArgument,
        Kind::PayloadTooLarge | Kind::TooLarge | Kind::LimitReached => Error::LimitExceeded,
        Kind::Unauthenticated | Kind::KeyEnded | Kind::PermissionDenied => Error::PermissionDenied,
        Kind::Fenced | Kind::ProducerFenced => Error::Fenced,
        Kind::FailedPrecondition
        | Kind::ClaimLost
        | Kind::TooFarAhead
        | Kind::NotStaged
        | Kind::StaleSequence
        | Kind::SequenceReused
        | Kind::Unsupported => Error::FailedPrecondition,
        Kind::Overloaded | Kind::QuotaExceeded | Kind::StoreFull => Error::Overloaded,
        Kind::QueueFull => Error::QueueFull,
        Kind::ShuttingDown | Kind::StoreBusy | Kind::NotOwner | Kind::ProviderAway => Error::Unavailable,
        Kind::Unspecified | Kind::Internal | Kind::StoreFailed => Error::Internal,
    }
}

/// Of statuses without a kind, and of kinds that this version does not know.
fn by_code(code: Code) -> fn(Box<Cause>) -> Error {
    match code {
        Code::InvalidArgument => Error::InvalidArgument,
        Code::FailedPrecondition | Code::Unimplemented => Error::FailedPrecondition,
        Code::OutOfRange => Error::LimitExceeded,
        Code::ResourceExhausted => Error::Overloaded,
        Code::Unavailable | Code::Cancelled => Error::Unavailable,
        Code::DeadlineExceeded => Error::DeadlineExceeded,
        Code::PermissionDenied | Code::Unauthenticated => Error::PermissionDenied,
        _ => Error::Internal,
    }
}

/// Why a stream ended, as it is seen on the wire.
#[derive(Debug)]
pub(crate) enum Failure {
    Status(Box<Status>),
    /// The peer does not keep to the contract: nothing more is read of what it sends.
    Unexpected(Error),
    /// It can be opened again.
    Lost(&'static str),
    /// The broker has no time now for what it may have carried out before.
    PutOff(Error),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// How a call ended that was not answered.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The broker said why.
    Refused(Error, Code),
    /// The connection was lost, or could not be made: `sent` says whether the request may have left.
    Lost { error: Error, sent: bool },
    /// Trying again would not help: there is no secure connection, or the answer cannot be read.
    Broken(Error),
}

impl Ended {
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Refused(error, _) | Self::Lost { error, .. } | Self::Broken(error) => error,
        }
    }

    /// The key with which a stream was begun is no longer valid. A second time in a row it is an error.
    pub(crate) fn is_key_ended(&self) -> bool {
        matches!(self, Self::Refused(error, _) if error.kind() == Some(ErrorKind::KeyEnded))
    }

    /// Whether what was asked for may have been done.
    pub(crate) fn may_be_done(&self) -> bool {
        !matches!(self, Self::Refused(..) | Self::Lost { sent: false, .. })
    }

    pub(crate) fn of_stream(failure: Failure, address: &str) -> Self {
        match failure {
            Failure::Status(status) => Self::of(*status, address),
            Failure::Unexpected(error) => Self::Broken(error),
            // As when the broker itself ends the stream because of it.
            Failure::PutOff(error) => Self::Refused(error, Code::Unavailable),
            Failure::Lost(text) => Self::Lost { error: Error::unavailable(format!("{address}: {text}")), sent: true },
        }
    }

    pub(crate) fn of(status: Status, address: &str) -> Self {
        if let Some(mut details) = details(&status) {
            if let Some(owner) = status.metadata().get("fila-owner").and_then(|owner| owner.to_str().ok()) {
                owner.clone_into(&mut details.owner);
            }
            return Self::Refused(Error::refusal(details, status.message()), status.code());
        }
        let text = format!("{address}: {}", text_of(&status));
        if tls_failed(&status) {
            return Self::Broken(Error::own(Error::Tls, text));
        }
        let lost = match status.code() {
            // The last one is that of a proxy that is busy.
            Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown | Code::ResourceExhausted => true,
            // Which code the transport gives its own errors depends on features of tonic that other crates switch on.
            _ => in_chain(&status, |source| source.is::<hyper::Error>()),
        };
        if lost {
            let sent = !in_chain(&status, |source| source.is::<tonic::ConnectError>());
            return Self::Lost { error: Error::unavailable(text), sent };
        }
        Self::Broken(Error::own(by_code(status.code()), text))
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// What the broker says of its refusal; `None`: it is not the broker that ended the call.
fn details(status: &Status) -> Option<proto::Error> {
    let decoded = RpcStatus::decode(status.details()).ok()?;
    let detail = decoded.details.iter().find(|detail| detail.type_url.ends_with("/fila.v1.Error"))?;
    proto::Error::decode(detail.value.as_slice()).ok()
}

type Source = dyn std::error::Error + 'static;

fn in_chain(status: &Status, test: impl Fn(&Source) -> bool) -> bool {
    sources(status).any(test)
}

fn sources(status: &Status) -> impl Iterator<Item = &Source> {
    std::iter::successors(std::error::Error::source(status), |error| match error.downcast_ref::<std::io::Error>() {
        // An error inside of an I/O error is not its source.
        Some(io) => io.get_ref().map(|inner| inner as &Source),
        None => error.source(),
    })
}

/// The text of a status and of its innermost cause, which says more.
fn text_of(status: &Status) -> String {
    let message = match status.message() {
        "" => status.code().description(),
        message => message,
    };
    match sources(status).last().map(ToString::to_string) {
        Some(cause) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message.to_owned(),
    }
}

#[cfg(feature = "tls")]
fn tls_failed(status: &Status) -> bool {
    in_chain(status, |source| source.is::<rustls::Error>())
}

#[cfg(not(feature = "tls"))]
fn tls_failed(_status: &Status) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_kind_decides() {
        let refused = proto::Error { code: 5, kind: ErrorKind::LeaseEnded.into(), ..Default::default() };
        let error = Error::refusal(refused, "gone");
        assert!(matches!(error, Error::MessageNotFound(_)));
        assert_eq!((error.kind(), error.to_string().as_str()), (Some(ErrorKind::LeaseEnded), "gone"));
    }

    #[test]
    fn an_unknown_kind_goes_by_its_code_and_says_whether_it_is_retryable() {
        let refused = proto::Error { code: 14, kind: 999, retryable: true, retry_after_ms: 7, ..Default::default() };
        let error = Error::refusal(refused, "");
        assert!(matches!(error, Error::Unavailable(_)) && error.is_retryable() && error.kind().is_none());
        assert_eq!(error.retry_after(), Duration::from_millis(7));
        let busy = proto::Error { code: 8, kind: 999, ..Default::default() };
        assert!(matches!(Error::refusal(busy, ""), Error::Overloaded(_)), "no request is too large because of load");
    }

    #[test]
    fn a_status_without_details_is_a_lost_connection() {
        for code in [Code::Unavailable, Code::Cancelled, Code::Internal, Code::Unknown, Code::ResourceExhausted] {
            assert!(matches!(Ended::of(Status::new(code, ""), "a:1"), Ended::Lost { sent: true, .. }));
        }
        assert!(matches!(Ended::of(Status::not_found(""), "a:1"), Ended::Broken(Error::Internal(_))));
    }
}
