//! W3C trace context in the headers of messages.

use std::collections::HashMap;

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};

use crate::outgoing::OutgoingMessage;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// A longer one is left out, since it travels with every message.
const MAX_STATE: usize = 512;

/// Inside of a sampled span, a message carries its trace context. What the program has set itself stays.
pub(crate) fn inject(message: &mut OutgoingMessage) {
    if message.has_header(TRACEPARENT) {
        return;
    }
    Context::map_current(|context| {
        let span = context.span();
        let span = span.span_context();
        if !span.is_valid() || !span.is_sampled() {
            return;
        }
        let flags = span.trace_flags().to_u8();
        let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
        message.set_header(TRACEPARENT.to_owned(), parent);
        let state = span.trace_state().header();
        if !state.is_empty() && state.len() <= MAX_STATE && !message.has_header(TRACESTATE) {
            message.set_header(TRACESTATE.to_owned(), state);
        }
    });
}

/// The trace context of a message; an empty one when it has none.
pub(crate) fn extract(headers: &HashMap<String, String>) -> Context {
    match parsed(headers) {
        Some(span) => Context::new().with_remote_span_context(span),
        None => Context::new(),
    }
}

fn parsed(headers: &HashMap<String, String>) -> Option<SpanContext> {
    let mut parts = headers.get(TRACEPARENT)?.split('-');
    let mut hex = |length| parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex));
    let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    // Later versions may have more parts; this one has not, and ff is none.
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let state = headers.get(TRACESTATE).and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let context = SpanContext::new(TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?, flags, true, state);
    context.is_valid().then_some(context)
}

fn is_hex(sign: u8) -> bool {
    matches!(sign, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_injected_is_extracted() {
        let state: TraceState = "a=1".parse().expect("valid");
        let span = SpanContext::new(TraceId::from(7), SpanId::from(9), TraceFlags::SAMPLED, false, state);
        let _guard = Context::new().with_remote_span_context(span.clone()).attach();
        let mut message = OutgoingMessage::new("x").header("tracestate", "own");
        inject(&mut message);
        let headers = message.into_headers();
        assert_eq!(headers["traceparent"], "00-00000000000000000000000000000007-0000000000000009-01");
        assert_eq!(headers["tracestate"], "own");
        assert_eq!(extract(&headers).span().span_context().trace_id(), span.trace_id());
    }

    #[test]
    fn the_state_of_one_trace_is_not_put_beside_the_parent_of_another() {
        let state: TraceState = "a=1".parse().expect("valid");
        let span = SpanContext::new(TraceId::from(7), SpanId::from(9), TraceFlags::SAMPLED, false, state);
        let _guard = Context::new().with_remote_span_context(span).attach();
        let mut message = OutgoingMessage::new("x").header("traceparent", "own");
        inject(&mut message);
        assert_eq!(message.into_headers(), HashMap::from([("traceparent".to_owned(), "own".to_owned())]));
    }

    #[test]
    fn what_is_no_trace_context_is_left_alone() {
        for text in [
            "",
            "00-0-0-01",
            "00-x",
            "ff-00000000000000000000000000000007-0000000000000009-01",
            "00-+0000000000000000000000000000007-0000000000000009-01",
            "00-00000000000000000000000000000007-0000000000000009-01-02",
        ] {
            let headers = HashMap::from([(TRACEPARENT.to_owned(), text.to_owned())]);
            assert!(!extract(&headers).span().span_context().is_valid(), "{text}");
        }
        let mut message = OutgoingMessage::new("x");
        inject(&mut message);
        assert!(message.into_headers().is_empty());
    }
}
