# frozen_string_literal: true

require 'test_helper'

# Brokers that send what they should not: an error is told at once, memory and time are bounded, and the client goes on.
class HostileTest < FilaTest
  include ScriptedStreams

  V1 = Fila::V1

  def test_an_answer_with_a_wrong_number_fails_its_callers_and_no_others
    answers = [->(request) { V1::EnqueueBatchResponse.new(sequence: request.sequence + 1) }, method(:enqueued)]
    with_enqueue_stream(answers) do |client|
      assert_raises(Fila::InternalError) { client.enqueue(queue: 'q') }
      assert_equal 'there', client.enqueue(queue: 'q')
    end
  end

  def test_an_answer_that_cannot_be_read_fails_its_callers_and_no_others
    with_enqueue_stream([->(_) { FakeBroker::Garbage.new }, method(:enqueued)]) do |client|
      assert_raises(Fila::InternalError) { client.enqueue(queue: 'q') }
      assert_equal 'there', client.enqueue(queue: 'q')
    end
  end

  def test_a_settlement_goes_on_after_an_answer_that_cannot_be_read
    answers = [->(_) { FakeBroker::Garbage.new }, ->(request) { V1::SettleResponse.new(sequence: request.sequence) }]
    with_broker(settle: in_turn(answers)) do |client|
      assert_raises(Fila::InternalError) { client.ack(queue: 'q', msg_id: 'x') }
      assert_nil client.ack(queue: 'q', msg_id: 'x')
    end
  end

  def test_a_batch_that_the_broker_may_have_forgotten_is_not_sent_again
    seen = Queue.new
    answers = [method(:lost), method(:enqueued)].map { |answer| ->(request) { answer.call(request, seen) } }
    changing(Fila::EnqueueCodec, :REPEATABLE, 0.0) do
      with_enqueue_stream(answers) do |client|
        error = assert_raises(Fila::FailedPreconditionError) { client.enqueue(queue: 'q') }
        assert_equal [:STALE_SEQUENCE, false], [error.kind, error.retryable?]
        assert_equal 'there', client.enqueue(queue: 'q')
      end
    end
    assert_equal [1, 2], Array.new(seen.size) { seen.pop }
  end

  def test_a_settlement_whose_answer_is_lost_is_sent_again_for_ever
    assert_operator Fila::SettleCodec.new.repeatable, :infinite?
    assert_operator Fila::EnqueueCodec.new.repeatable, :<, 600
  end

  def test_an_answer_of_a_call_that_cannot_be_read_is_an_error_of_the_sdk
    with_broker(describe: ->(*) { FakeBroker::Garbage.new }) do |client|
      assert_raises(Fila::InternalError) { client.describe }
    end
  end

  def test_a_delivery_that_cannot_be_read_ends_the_consumer
    with_broker(consume: ->(*) { [FakeBroker::Garbage.new] }) do |client|
      consumer = client.consume(queue: 'q')

      2.times { assert_raises(Fila::InternalError) { consumer.pop } }
      assert_predicate consumer, :stopped?
    end
  end

  def test_a_list_without_an_end_costs_the_deadline
    endless = ->(*) { V1::ListQueuesResponse.new(cursor: 'again') }
    with_broker(list_queues: endless) do |client|
      assert_raises(Fila::TimeoutError, Fila::UnavailableError) { client.list_queues(timeout: 0.3) }
    end
  end

  # A request with more than 5,000 settlements is refused, and leases that are not extended end.
  def test_leases_of_thousands_of_messages_are_extended_in_several_requests
    sizes = Queue.new
    settle = in_turn([lambda do |request|
      sizes << request.extends.sum { |group| group.message_ids.size }
      V1::SettleResponse.new(sequence: request.sequence)
    end])
    with_broker(consume: delivering(6000), settle: settle) do |client|
      consumer = client.consume(queue: 'q', max_in_flight: 6000)
      seen = []
      seen << sizes.pop until seen.sum >= 6000

      assert_operator seen.max, :<=, 5000
      consumer.stop
    end
  end

  # The broker has taken leave of all of them before it ends the first stream.
  def test_many_consumers_are_closed_at_once
    leaving = Queue.new
    done = Queue.new
    slow = lambda do |requests, *|
      Enumerator.new do
        requests.each(&:itself)
        leaving << true
        done.pop
      end
    end
    changing(Fila::Feed, :GOODBYE, 600) do # how long a consumer waits for the end of its stream
      with_broker(consume: slow) do |client, broker|
        consumers = Array.new(10) { client.consume(queue: 'q') }
        consumers.each { broker.calls.pop }
        closing = Thread.new { client.close }
        consumers.each { leaving.pop }
        done.close
        closing.join
      end
    end
  end

  private

  # A constant has another value for the time of the block.
  def changing(owner, name, value)
    usual = owner.const_get(name)
    change = lambda do |to|
      owner.__send__(:remove_const, name)
      owner.const_set(name, to)
    end
    change.call(value)
    yield
  ensure
    change.call(usual)
  end

  # One lease of many messages, which is to be extended soon.
  def delivering(count)
    lambda do |requests, *|
      metadata = V1::MessageMetadata.new(lease_id: 'lease')
      messages = Array.new(count) { |n| V1::Message.new(id: n.to_s, metadata: metadata) }
      first = V1::ConsumeResponse.new(messages: messages, visibility_timeout_ms: 300)
      Enumerator.new do |responses|
        responses << first
        requests.each(&:itself)
      end
    end
  end
end
