# frozen_string_literal: true

require 'test_helper'

class EnqueueCodecTest < FilaTest
  V1 = Fila::V1

  def setup
    @codec = Fila::EnqueueCodec.new('me')
  end

  def test_requests_that_wait_travel_together_in_order
    gathered = %w[a b c].map { |payload| enqueue(payload) }
    batch = @codec.make_batch(gathered, 'host:1')

    assert_empty gathered
    assert_equal %w[a b c], decoded(batch).messages.map(&:payload)
    assert_equal ['me-0', 1], [decoded(batch).producer_id, decoded(batch).sequence]
  end

  def test_a_batch_has_at_most_a_thousand_messages_and_one_mebibyte
    many = Array.new(1500) { enqueue('x') }
    large = Array.new(3) { enqueue('x' * 600_000) }

    assert_equal 1000, decoded(@codec.make_batch(many, 'host:1')).messages.size
    assert_equal 1, decoded(@codec.make_batch(large, 'host:1')).messages.size
  end

  def test_a_message_above_the_size_of_a_batch_goes_alone
    gathered = [enqueue('x' * 2_000_000), enqueue('y')]

    assert_equal 1, @codec.make_batch(gathered, 'host:1').waiters.size
  end

  def test_each_member_counts_by_itself
    names = %w[host:1 host:2 host:1].map do |address|
      made = decoded(@codec.make_batch([enqueue('x')], address))
      [made.producer_id, made.sequence]
    end

    assert_equal [['me-0', 1], ['me-1', 1], ['me-0', 2]], names
  end

  def test_a_broker_that_names_ever_more_members_costs_no_memory
    sent = Array.new(200) { |n| decoded(@codec.make_batch([enqueue('x')], "host:#{n + 1}")).producer_id }
    again = decoded(@codec.make_batch([enqueue('x')], 'host:1'))

    assert_equal 200, sent.uniq.size
    assert_operator @codec.instance_variable_get(:@members).size, :<=, Fila::EnqueueCodec::MOST_MEMBERS
    # The numbers of a member that was forgotten begin anew, so its id must be a new one.
    assert_equal ['me-200', 1], [again.producer_id, again.sequence]
  end

  # A client that was made before a fork may be used first in several children.
  def test_a_producer_has_no_id_before_its_first_batch
    codec = Fila::EnqueueCodec.new
    ids = Array.new(2) do
      output, input = IO.pipe
      child = fork do
        input.write(decoded(codec.make_batch([enqueue('x')], 'host:1')).producer_id)
        exit!
      end
      Process.wait(child)
      input.close
      output.read
    end

    refute_equal(*ids)
  end

  def test_what_nobody_waits_for_is_never_sent_and_takes_no_number
    gone = enqueue('x').tap(&:abandon)

    assert_nil @codec.make_batch([gone], 'host:1')
    assert_equal 1, @codec.make_batch([enqueue('y')], 'host:1').sequence
  end

  def test_each_caller_gets_its_own_results
    first = enqueue('a', 'b')
    second = enqueue('c')
    batch = @codec.make_batch([first, second], 'host:1')
    refused = V1::Error.new(kind: :ERROR_KIND_QUEUE_FULL, code: 8, retryable: true)
    @codec.answer(batch, response(%w[1 2], V1::EnqueueResult.new(error: refused)))

    assert_equal %w[1 2], first.result { flunk }.map(&:id)
    assert_instance_of Fila::QueueFullError, second.result { flunk }.first.error
  end

  def test_a_batch_that_was_sent_again_is_no_duplicate_but_a_dedup_key_is
    plain = enqueue('a')
    keyed = Fila::Enqueue.new(['x'], [true], now + 60)
    batch = @codec.make_batch([plain, keyed], 'host:1')
    batch.resent = true
    @codec.answer(batch, response(%w[1 2], duplicate: true))

    refute_predicate plain.result { flunk }.first, :duplicate?
    assert_predicate keyed.result { flunk }.first, :duplicate?
  end

  def test_a_wrong_number_of_results_is_an_error_of_all
    caller = enqueue('a', 'b')
    @codec.answer(@codec.make_batch([caller], 'host:1'), response(%w[1]))

    assert_raises(Fila::InternalError) { caller.result { flunk } }
  end

  private

  def enqueue(*payloads)
    frames = payloads.map { |payload| Fila::OutgoingMessage.new(payload: payload).encode('q') }
    Fila::Enqueue.new(frames, [false] * frames.size, now + 60)
  end

  def decoded(batch)
    V1::EnqueueBatchRequest.decode(batch.data)
  end

  def response(ids, *more, duplicate: false)
    results = ids.map { |id| V1::EnqueueResult.new(message_id: id, duplicate: duplicate) }
    V1::EnqueueBatchResponse.new(results: results + more)
  end
end
