# frozen_string_literal: true

require 'test_helper'

# The four operations of the specification, and what a message has.
class MessagesTest < ServerTest
  def test_a_message_arrives_with_all_its_fields_and_is_acked
    make_queue(fairness_header: 'tenant')
    id = client.enqueue(queue: queue_name, headers: { 'tenant' => 'acme' }, payload: "\xFF\x00bytes".b)
    message = client.consume(queue: queue_name) { |found| break found }

    assert_equal [id, queue_name, 'acme', 0], [message.id, message.queue, message.fairness_key, message.attempt_count]
    assert_equal({ 'tenant' => 'acme' }, message.headers)
    assert_equal "\xFF\x00bytes".b, message.payload
    assert_in_delta Time.now, message.enqueued_at, 30
    message.ack
    assert_equal 0, depth
  end

  def test_a_nacked_message_comes_back_with_an_attempt_counted
    make_queue
    id = client.enqueue(queue: queue_name, payload: 'work')
    consumer = client.consume(queue: queue_name)
    consumer.pop.nack(error: 'not today')
    again = consumer.pop(timeout: 60)

    assert_equal [id, 1], [again.id, again.attempt_count]
    again.ack
  end

  def test_a_released_message_comes_back_without_an_attempt
    make_queue
    client.enqueue(queue: queue_name)
    consumer = client.consume(queue: queue_name)
    consumer.pop.release

    assert_equal 0, consumer.pop(timeout: 60).attempt_count
  end

  def test_a_rejected_message_becomes_a_dead_letter_with_its_error
    make_queue
    id = client.enqueue(queue: queue_name)
    client.consume(queue: queue_name).pop.reject(error: "broken \xFF".b)
    letter = client.peek(queue: "#{queue_name}.dlq").first.message

    assert_equal id, letter.id
    assert_equal :DEAD_LETTER_REASON_REJECTED, letter.metadata.dead_letter.reason
    assert_match(/broken/, letter.metadata.dead_letter.attempts.last.error)
  end

  def test_messages_are_settled_by_queue_and_id_too
    make_queue
    2.times { client.enqueue(queue: queue_name) }
    consumer = client.consume(queue: queue_name)
    first, second = consumer.first(2)
    consumer.stop
    client.ack(queue: queue_name, msg_id: first.id)
    client.nack(queue: queue_name, msg_id: second.id, error: 'once more')

    assert_equal 1, depth
    error = assert_raises(Fila::MessageNotFoundError) { client.ack(queue: queue_name, msg_id: first.id) }
    assert_includes %i[MESSAGE_GONE MESSAGE_NOT_FOUND], error.kind
  end

  def test_a_consumer_is_an_enumerator
    make_queue
    client.enqueue_many(queue: queue_name, messages: %w[a b c d])
    consumer = client.consume(queue: queue_name)

    assert_kind_of Enumerator, consumer
    assert_equal %w[a b], consumer.take(2).each(&:ack).map(&:payload)
    assert_equal 'c', consumer.with_index.first.first.payload
    assert_equal 'd', consumer.next.payload
  end

  def test_options_of_a_message_are_kept
    make_queue
    client.enqueue(queue: queue_name, payload: 'late', priority: 200)
    client.enqueue(queue: queue_name, payload: 'first', priority: 0)
    client.enqueue(queue: queue_name, payload: 'delayed', delay_ms: 300)
    began = now

    assert_equal %w[first late delayed], drain(queue_name, 3).map(&:payload)
    assert_operator now - began, :>, 0.1
  end

  def test_a_second_message_with_the_same_dedup_key_is_told
    make_queue
    first = client.enqueue_result(queue: queue_name, dedup_key: 'k')
    second = client.enqueue_result(queue: queue_name, dedup_key: 'k')

    assert_equal [first.id, false, true], [second.id, first.duplicate?, second.duplicate?]
    assert_equal 1, depth
  end
end
