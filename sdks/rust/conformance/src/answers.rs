//! JSON of the protocol to values of the SDK, and back.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fila_client::{Error, Message, OutgoingMessage, proto};
use serde_json::{Value, json};

pub(crate) type Outcome = Result<Value, Problem>;

/// Why a request is answered with an error.
pub(crate) enum Problem {
    Sdk(Error),
    Late,
    Cancelled,
    UnknownOp(String),
    Request(String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Sdk(error)
    }
}

pub(crate) fn refusal(problem: &Problem) -> Value {
    let (kind, name, message, retryable) = match problem {
        Problem::Sdk(error) => (kind_of(error), variant(error), error.to_string(), error.is_retryable()),
        Problem::Late => ("DEADLINE_EXCEEDED".into(), "Elapsed".into(), "the time is over".into(), false),
        Problem::Cancelled => ("CANCELLED".into(), "Cancelled".into(), "the call was dropped".into(), false),
        Problem::UnknownOp(op) => ("UNSUPPORTED_OP".into(), "UnknownOp".into(), format!("no operation {op:?}"), false),
        Problem::Request(text) => ("INTERNAL".into(), "BadRequest".into(), text.clone(), false),
    };
    json!({"kind": kind, "type": name, "message": message, "retryable": retryable})
}

fn kind_of(error: &Error) -> String {
    if let Some(kind) = error.kind() {
        return kind.as_str_name().trim_start_matches("ERROR_KIND_").to_owned();
    }
    match error {
        Error::Closed(_) => "CLOSED",
        Error::DeadlineExceeded(_) => "DEADLINE_EXCEEDED",
        // Refused without a kind: whoever did that, such as a port that wants TLS, is not a broker that can be used.
        Error::Unavailable(_) | Error::Tls(_) | Error::PermissionDenied(_) => "UNAVAILABLE",
        Error::InvalidArgument(_) => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
    .to_owned()
}

fn variant(error: &Error) -> String {
    let text = format!("{error:?}");
    text.split('(').next().unwrap_or_default().to_owned()
}

pub(crate) fn text<'a>(request: &'a Value, name: &str) -> &'a str {
    request[name].as_str().unwrap_or_default()
}

pub(crate) fn number(request: &Value, name: &str, default: u64) -> u64 {
    request[name].as_u64().unwrap_or(default)
}

pub(crate) fn millis(request: &Value, name: &str, default: u64) -> Duration {
    Duration::from_millis(number(request, name, default))
}

pub(crate) fn payload(request: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(text(request, "payload")).unwrap_or_default()
}

pub(crate) fn headers(request: &Value) -> Vec<(String, String)> {
    let pairs = request["headers"].as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

pub(crate) fn outgoing(request: &Value) -> OutgoingMessage {
    let options = &request["options"];
    let mut message = OutgoingMessage::new(payload(request)).headers(headers(request));
    message = message.delay(millis(options, "delay_ms", 0)).dedup_key(text(options, "dedup_key"));
    match options["priority"].as_u64() {
        Some(priority) => message.priority(u8::try_from(priority).unwrap_or(u8::MAX)),
        None => message,
    }
}

pub(crate) fn incoming(message: &Message) -> Value {
    json!({
        "id": message.id(),
        "queue": message.queue(),
        "headers": message.headers(),
        "payload": BASE64_STANDARD.encode(message.payload()),
        "fairness_key": message.fairness_key(),
        "attempt_count": message.attempt_count(),
        "lease_id": message.lease_id(),
    })
}

/// Settings of a queue, named as in the contract.
pub(crate) fn settings(given: &Value) -> proto::QueueConfig {
    let long = |name: &str| given[name].as_u64();
    let short = |name: &str| given[name].as_u64().and_then(|number| u32::try_from(number).ok());
    let words = |name: &str| given[name].as_str().map(str::to_owned);
    let names = given["throttle_headers"]["names"].as_array().map(|names| proto::HeaderNames {
        names: names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
    });
    proto::QueueConfig {
        visibility_timeout_ms: long("visibility_timeout_ms"),
        fairness_header: words("fairness_header"),
        weight_header: words("weight_header"),
        quantum: short("quantum"),
        dedup_window_ms: long("dedup_window_ms"),
        throttle_headers: names,
        cost_header: words("cost_header"),
        max_attempts: short("max_attempts"),
        retry_delay_ms: long("retry_delay_ms"),
        retry_backoff: given["retry_backoff"].as_f64(),
        retry_max_delay_ms: long("retry_max_delay_ms"),
        retry_jitter: given["retry_jitter"].as_f64(),
        script: words("script"),
        script_timeout_ms: short("script_timeout_ms"),
        script_memory_bytes: short("script_memory_bytes"),
        max_depth: long("max_depth"),
        max_bytes: long("max_bytes"),
        overflow: given["overflow"].as_str().and_then(proto::Overflow::from_str_name).map(Into::into),
        on_enqueue: words("on_enqueue"),
        on_failure: words("on_failure"),
    }
}
