# frozen_string_literal: true

require 'test_helper'

class EnqueueTest < ServerTest
  def test_calls_of_many_threads_travel_together
    make_queue
    threads = Array.new(20) do
      Thread.new { Array.new(50) { client.enqueue(queue: queue_name, payload: 'x') } }
    end
    ids = threads.flat_map(&:value)

    assert_equal 1000, ids.uniq.size
    assert_equal 1000, depth
  end

  def test_many_messages_keep_their_order
    make_queue
    payloads = Array.new(1200, &:to_s)
    results = client.enqueue_many(queue: queue_name, messages: payloads)

    assert_equal results.map(&:id), results.map(&:id).sort
    assert_equal payloads, drain(queue_name, 1200).map(&:payload)
  end

  def test_messages_of_many_may_have_options
    make_queue
    messages = ['text', { payload: 'hash', headers: { tenant: 'acme' } },
                Fila::OutgoingMessage.new(payload: 'object', priority: 0)]
    client.enqueue_many(queue: queue_name, messages: messages)

    assert_equal %w[object text hash], drain(queue_name, 3).map(&:payload)
  end

  def test_no_messages_are_no_error
    assert_empty client.enqueue_many(queue: 'nowhere', messages: [])
  end

  def test_more_than_the_buffer_holds_is_sent_in_turn
    make_queue
    payload = 'x' * 1_000_000
    results = client.enqueue_many(queue: queue_name, messages: [payload] * 20)

    assert_equal 20, results.count(&:ok?)
    assert_equal 20, depth
  end

  def test_some_messages_are_refused_and_the_others_are_enqueued
    make_queue(max_depth: 2)
    error = assert_raises(Fila::EnqueueManyError) do
      client.enqueue_many(queue: queue_name, messages: %w[a b c], timeout: 2)
    end

    assert_equal [true, true, false], error.results.map(&:ok?)
    assert_equal [:QUEUE_FULL, true], [error.kind, error.retryable?]
  end

  def test_a_full_queue_is_waited_for_within_the_deadline
    make_queue(max_depth: 1)
    client.enqueue(queue: queue_name, payload: 'first')
    waiting = Thread.new { client.enqueue(queue: queue_name, payload: 'second') }
    eventually { waiting.stop? }

    assert_equal ['first'], drain(queue_name, 1).map(&:payload)
    assert_kind_of String, waiting.value
  end

  def test_a_full_queue_is_told_at_the_deadline
    make_queue(max_depth: 1)
    client.enqueue(queue: queue_name)

    assert_raises(Fila::QueueFullError) { client.enqueue(queue: queue_name, timeout: 2) }
  end

  def test_errors_have_types_and_kinds
    error = assert_raises(Fila::QueueNotFoundError) { client.enqueue(queue: 'nowhere') }
    assert_equal [:QUEUE_NOT_FOUND, false], [error.kind, error.retryable?]

    make_queue
    error = assert_raises(Fila::LimitExceededError) { client.enqueue(queue: queue_name, payload: 'x' * 5_000_000) }
    assert_equal :PAYLOAD_TOO_LARGE, error.kind
    assert_kind_of String, client.enqueue(queue: queue_name), 'the stream goes on'
  end

  # Without the interrupt they would last for longer than a test may.
  def test_an_interrupted_call_ends_and_the_client_can_be_closed
    make_queue
    with_silent_server do |address|
      silent = Fila::Client.new(address, timeout: 600)
      [-> { silent.enqueue(queue: 'q') }, -> { silent.describe }, -> { silent.ack(queue: 'q', msg_id: 'x') },
       -> { silent.enqueue_many(queue: 'q', messages: %w[a b]) }].each do |call|
        assert_raises(Timeout::Error) { Timeout.timeout(0.1) { call.call } }
      end
      silent.close
    end
  end

  def test_a_silent_server_costs_the_deadline
    with_silent_server do |address|
      silent = Fila::Client.new(address, timeout: 0.3)
      calls = [-> { silent.enqueue(queue: 'q') }, -> { silent.describe }, -> { silent.ack(queue: 'q', msg_id: 'x') }]
      calls.each do |call|
        assert_includes %i[UNAVAILABLE DEADLINE_EXCEEDED], assert_raises(Fila::Error, &call).kind
      end
      silent.close
    end
  end

  def test_closing_ends_the_calls_that_wait
    with_silent_server do |address|
      silent = Fila::Client.new(address, timeout: 600)
      calls = [-> { silent.enqueue(queue: 'q') }, -> { silent.ack(queue: 'q', msg_id: 'x') }, -> { silent.describe }]
      waiting = calls.map { |call| Thread.new { assert_raises(Fila::Error, &call).kind } }
      eventually { waiting.all?(&:stop?) }
      silent.close
      assert_empty waiting.map(&:value) - %i[CLOSED CANCELLED]
    end
  end

  # Callers of the buffer wait for room, and give up in time.
  def test_the_buffer_is_bounded
    with_silent_server do |address|
      silent = Fila::Client.new(address, timeout: 600)
      large = 'x' * 1_000_000
      waiting = Array.new(16) do
        Thread.new { assert_raises(Fila::Error) { silent.enqueue(queue: 'q', payload: large) } }
      end
      eventually { waiting.all?(&:stop?) }
      error = assert_raises(Fila::TimeoutError) { silent.enqueue(queue: 'q', payload: large, timeout: 0.2) }

      assert_match(/too much waits/, error.message)
      silent.close
      assert_equal [:CLOSED], waiting.map { |thread| thread.value.kind }.uniq
    end
  end

  # One that is still waited for is the first of the queue for the wire, and the others are behind it.
  def test_calls_that_were_given_up_cost_no_memory
    with_silent_server do |address|
      silent = Fila::Client.new(address, timeout: 600)
      waiting = Thread.new { assert_raises(Fila::ClosedError) { silent.enqueue(queue: 'q') } }
      eventually { waiting.stop? }
      300.times { assert_raises(Fila::Error) { silent.enqueue(queue: 'q', timeout: 0) } }
      GC.start

      assert_operator ObjectSpace.each_object(Fila::Enqueue).count, :<, 150
      silent.close
      waiting.join
    end
  end

  private

  # Accepts connections, and never says a word.
  def with_silent_server
    server = TCPServer.new('127.0.0.1', 0)
    yield "127.0.0.1:#{server.addr[1]}"
  ensure
    server&.close
  end
end
