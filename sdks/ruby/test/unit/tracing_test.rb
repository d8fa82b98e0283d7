# frozen_string_literal: true

require 'test_helper'

# The part of the OpenTelemetry API that the SDK uses, with the names and shapes of the gem opentelemetry-api.
module FakeOpenTelemetry
  Flags = Struct.new(:sampled) do
    def sampled?
      sampled
    end
  end
  SpanContext = Struct.new(:hex_trace_id, :hex_span_id, :trace_flags, :tracestate, :valid) do
    def valid?
      valid
    end
  end
  Span = Struct.new(:context)

  # Remembers the spans that were made.
  class Tracer
    attr_reader :spans

    def initialize
      @spans = []
    end

    def tracer(*)
      self
    end

    def in_span(name, **options)
      @spans << [name, options.merge(parent: Context.current)]
      yield
    end
  end

  # What is current.
  module Context
    class << self
      attr_accessor :current

      def with_current(context)
        before = current
        self.current = context
        yield
      ensure
        self.current = before
      end
    end
  end

  # The current span, and how contexts travel.
  module Trace
    class << self
      attr_accessor :current_span
    end

    module Propagation
      module TraceContext
        def self.text_map_propagator
          self
        end

        def self.extract(carrier)
          carrier['traceparent']
        end
      end
    end
  end

  class << self
    attr_accessor :tracer_provider
  end
end

class TracingTest < FilaTest
  TRACE = '0af7651916cd43dd8448eb211c80319c'
  SPAN = 'b7ad6b7169203331'
  PARENT = "00-#{TRACE}-#{SPAN}-01".freeze

  def setup
    Object.const_set(:OpenTelemetry, FakeOpenTelemetry)
    FakeOpenTelemetry.tracer_provider = FakeOpenTelemetry::Tracer.new
    current
  end

  def teardown
    Object.__send__(:remove_const, :OpenTelemetry)
  end

  def test_a_message_carries_the_context_of_the_current_span
    current(state: 'vendor=1')

    assert_equal({ 'a' => 'b', 'traceparent' => PARENT, 'tracestate' => 'vendor=1' }, headers('a' => 'b'))
  end

  def test_a_context_of_its_own_stays
    assert_equal({ 'traceparent' => 'mine' }, headers('traceparent' => 'mine'))
  end

  def test_a_span_that_is_not_sampled_or_not_valid_is_not_sent
    current(sampled: false)
    assert_empty headers

    current(valid: false)
    assert_empty headers
  end

  def test_a_long_tracestate_is_left_out
    current(state: "v=#{'x' * 600}")

    assert_equal ['traceparent'], headers.keys
  end

  def test_processing_continues_the_trace_of_the_producer
    returned = delivered('traceparent' => PARENT).span { :done }
    name, options = FakeOpenTelemetry.tracer_provider.spans.first

    assert_equal [:done, 'process q', :consumer, PARENT], [returned, name, options[:kind], options[:parent]]
    assert_equal 'q', options[:attributes]['messaging.destination.name']
  end

  def test_without_opentelemetry_nothing_happens
    teardown

    assert_empty headers
    assert_equal(:done, delivered.span { :done })
  ensure
    setup
  end

  private

  def current(sampled: true, valid: true, state: '')
    flags = FakeOpenTelemetry::Flags.new(sampled)
    context = FakeOpenTelemetry::SpanContext.new(TRACE, SPAN, flags, state, valid)
    FakeOpenTelemetry::Trace.current_span = FakeOpenTelemetry::Span.new(context)
  end

  def headers(given = {})
    frame = Fila::OutgoingMessage.new(headers: given).encode('q')
    Fila::V1::EnqueueBatchRequest.decode(frame).messages.first.headers.to_h
  end

  def delivered(headers = {})
    Fila::ConsumeMessage.new(Fila::V1::Message.new(id: '1', headers: headers), 'q', nil)
  end
end
