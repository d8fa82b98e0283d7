# frozen_string_literal: true

require 'test_helper'

# The broker refuses a request for a while, before it looks at its number. What was sent before may have been carried
# out.
class RefusedForAWhileTest < FilaTest
  include ScriptedStreams

  V1 = Fila::V1

  # Under another number it would be enqueued twice.
  def test_what_may_have_been_carried_out_keeps_its_number_when_it_is_refused_for_a_while
    %i[OVERLOADED QUOTA_EXCEEDED SHUTTING_DOWN].each do |kind|
      seen = Queue.new
      with_enqueue_stream(sent(seen, :lost, kind, :lost, kind, kind, :enqueued)) do |client|
        assert_equal 'there', client.enqueue(queue: 'q')
        assert_equal 'there', client.enqueue(queue: 'q')
      end
      assert_equal [1, 1, 1, 1, 1, 1, 2], Array.new(seen.size) { seen.pop }
    end
  end

  def test_many_messages_that_may_have_been_carried_out_keep_their_number_too
    seen = Queue.new
    with_enqueue_stream(sent(seen, :lost, :OVERLOADED, :enqueued)) do |client|
      assert_equal %w[there there], client.enqueue_many(queue: 'q', messages: %w[a b]).map(&:id)
    end
    assert_equal [1, 1, 1], Array.new(seen.size) { seen.pop }
  end

  def test_a_higher_number_gets_through_only_after_what_was_refused_for_a_while
    seen = Queue.new
    lost_together = lambda do |requests, *|
      2.times { seen << [:taken, requests.next.sequence] }
      raise GRPC::Unavailable, 'lost'
    end
    rest = in_turn(sent(seen, :OVERLOADED, :enqueued))
    streams = [lost_together, rest]
    with_broker(enqueue_stream: ->(*given) { (streams.size > 1 ? streams.shift : rest).call(*given) }) do |client|
      callers = Array.new(2) do |before|
        eventually { seen.size == before }
        Thread.new { client.enqueue(queue: 'q') }
      end
      assert_equal %w[there there], callers.map(&:value)
    end
    assert_equal [[:taken, 1], [:taken, 2], 1, 1, 2], Array.new(seen.size) { seen.pop }
  end

  def test_what_was_never_sent_before_gets_a_new_number_when_it_is_refused_for_a_while
    seen = Queue.new
    with_enqueue_stream(sent(seen, :OVERLOADED, :enqueued)) do |client|
      assert_equal 'there', client.enqueue(queue: 'q')
    end
    assert_equal [1, 2], Array.new(seen.size) { seen.pop }
  end

  def test_what_is_refused_until_its_deadline_may_or_may_not_have_been_carried_out
    seen = Queue.new
    with_enqueue_stream(sent(seen, :lost, :OVERLOADED)) do |client|
      error = assert_raises(Fila::TimeoutError) { client.enqueue(queue: 'q', timeout: 1) }
      assert_match(/too much waits/, error.message)
    end
    assert_equal [1], Array.new(seen.size) { seen.pop }.uniq
  end

  def test_what_is_refused_for_good_is_not_sent_again
    seen = Queue.new
    with_enqueue_stream(sent(seen, :lost, :QUEUE_NOT_FOUND)) do |client|
      assert_raises(Fila::QueueNotFoundError) { client.enqueue(queue: 'q') }
    end
    assert_equal [1, 1], Array.new(seen.size) { seen.pop }
  end

  def test_it_comes_again_no_sooner_than_the_broker_asks
    with_enqueue_stream(sent(Queue.new, :lost, :OVERLOADED, :enqueued, retry_after_ms: 1000)) do |client|
      assert_operator timed { client.enqueue(queue: 'q') }, :>=, 1.0
    end
  end

  def test_an_ack_that_is_refused_for_a_while_is_still_one_that_was_sent_before
    seen = Queue.new
    answers = sent(seen, :lost, :OVERLOADED, :lost, :OVERLOADED, :gone, response: V1::SettleResponse)
    with_broker(settle: in_turn(answers)) do |client|
      assert_nil client.ack(queue: 'q', msg_id: 'x')
      assert_raises(Fila::MessageNotFoundError) { client.ack(queue: 'q', msg_id: 'x') }
    end
    assert_equal [1, 1, 1, 1, 1, 2], Array.new(seen.size) { seen.pop }
  end

  def test_an_ack_that_was_refused_for_a_while_at_first_was_not_carried_out
    seen = Queue.new
    with_broker(settle: in_turn(sent(seen, :OVERLOADED, :gone, response: V1::SettleResponse))) do |client|
      assert_raises(Fila::MessageNotFoundError) { client.ack(queue: 'q', msg_id: 'x') }
    end
    assert_equal [1, 2], Array.new(seen.size) { seen.pop }
  end

  private

  def gone(request, seen)
    seen << request.sequence
    error = V1::Error.new(kind: :ERROR_KIND_MESSAGE_GONE)
    failures = request.acks.flat_map do |ack|
      ack.message_ids.map { |id| V1::SettleFailure.new(queue: ack.queue, message_id: id, error: error) }
    end
    V1::SettleResponse.new(sequence: request.sequence, failures: failures)
  end

  # The broker refuses a request as a whole.
  def refused(request, seen, response, kind, retry_after_ms)
    seen << request.sequence
    error = V1::Error.new(kind: :"ERROR_KIND_#{kind}", message: 'too much waits',
                          retryable: kind != :QUEUE_NOT_FOUND, retry_after_ms: retry_after_ms)
    response.new(sequence: request.sequence, error: error)
  end

  # Answers for {#in_turn}: names of methods, or kinds of refusals. The numbers of all requests are put into `seen`.
  def sent(seen, *names, response: V1::EnqueueBatchResponse, retry_after_ms: 0)
    names.map do |name|
      if name == name.downcase
        ->(request) { __send__(name, request, seen) }
      else
        ->(request) { refused(request, seen, response, name, retry_after_ms) }
      end
    end
  end
end
