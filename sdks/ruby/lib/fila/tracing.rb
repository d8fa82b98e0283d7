# frozen_string_literal: true

module Fila
  # Trace context of messages, for programs that use OpenTelemetry. The SDK does not load it.
  # @api private
  module Tracing
    TRACEPARENT = 'traceparent'
    TRACESTATE = 'tracestate'
    # A longer tracestate is left out, since it travels with every message.
    MAX_STATE = 512

    module_function

    # Headers with the context of the current span, unless they have one or there is no sampled span.
    def inject(headers)
      return headers unless defined?(::OpenTelemetry::Trace) && !headers.key?(TRACEPARENT)

      context = ::OpenTelemetry::Trace.current_span.context
      return headers unless context.valid? && context.trace_flags.sampled?

      state = context.tracestate.to_s
      traced = headers.merge(TRACEPARENT => "00-#{context.hex_trace_id}-#{context.hex_span_id}-01")
      state.empty? || state.size > MAX_STATE ? traced : traced.merge(TRACESTATE => state)
    end

    # Run the block inside a span that continues the trace of a message.
    def process(message, &block)
      return yield unless defined?(::OpenTelemetry::Trace)

      parent = ::OpenTelemetry::Trace::Propagation::TraceContext.text_map_propagator.extract(message.headers)
      ::OpenTelemetry::Context.with_current(parent) do
        ::OpenTelemetry.tracer_provider.tracer('fila', VERSION).in_span(
          "process #{message.queue}", kind: :consumer, attributes: {
            'messaging.system' => 'fila', 'messaging.operation.name' => 'process',
            'messaging.destination.name' => message.queue, 'messaging.message.id' => message.id
          }, &block
        )
      end
    end
  end
end
