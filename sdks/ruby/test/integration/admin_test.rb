# frozen_string_literal: true

require 'test_helper'

class AdminTest < ServerTest
  def test_queues_are_created_listed_changed_and_deleted
    make_queue(visibility_timeout_ms: 5000, throttle_headers: ['provider'])

    assert_includes client.list_queues.map(&:name), queue_name
    assert_raises(Fila::QueueAlreadyExistsError) { client.create_queue(queue: queue_name) }
    refute client.ensure_queue(queue: queue_name)
    changed = client.update_queue(queue: queue_name, max_attempts: 7)
    assert_equal [5000, 7, ['provider']],
                 [changed.visibility_timeout_ms, changed.max_attempts, changed.throttle_headers.names.to_a]
    client.enqueue(queue: queue_name)
    assert_equal 1, client.delete_queue(queue: queue_name)
    assert_raises(Fila::QueueNotFoundError) { client.stats(queue: queue_name) }
  end

  def test_a_paused_queue_delivers_nothing
    make_queue
    client.pause_queue(queue: queue_name)
    client.enqueue(queue: queue_name)
    consumer = client.consume(queue: queue_name)

    assert_nil consumer.pop(timeout: 0.2)
    client.resume_queue(queue: queue_name)
    assert consumer.pop(timeout: 60)
  end

  def test_configuration_is_set_read_listed_and_deleted
    key = "#{queue_name}.limit"
    client.set_config(key: key, value: '5')

    assert_equal '5', client.get_config(key: key)
    assert_equal({ key => '5' }, client.list_config(prefix: key))
    assert client.delete_config(key: key)
    refute client.delete_config(key: key)
    assert_raises(Fila::ConfigNotFoundError) { client.get_config(key: key) }
  end

  def test_throttles_are_entries_of_the_configuration
    client.set_throttle(key: queue_name, rate: 10, burst: 2)

    assert_equal ["throttle.#{queue_name}"], client.list_config(prefix: "throttle.#{queue_name}").keys
    assert client.remove_throttle(key: queue_name)
    refute client.remove_throttle(key: queue_name)
  end

  def test_dead_letters_are_redriven_and_purged
    make_queue
    dlq = "#{queue_name}.dlq"
    ids = client.enqueue_many(queue: queue_name, messages: %w[a b c]).map(&:id)
    client.consume(queue: queue_name).first(3).each { |message| message.reject(error: 'bad') }

    assert_equal ids, (client.peek(queue: dlq).map { |one| one.message.id })
    assert_equal ids.first(2), (client.peek(queue: dlq, count: 2).map { |one| one.message.id })
    assert_equal 1, client.redrive(dlq: dlq, count: 1)
    assert_equal 2, client.purge(queue: dlq)
    assert_empty client.peek(queue: dlq)
  end

  def test_a_look_has_at_least_one_message
    make_queue
    client.enqueue_many(queue: queue_name, messages: %w[a b])

    assert_equal 1, client.peek(queue: queue_name, count: 1).size
    [0, -1, nil, 1.5].each do |count|
      assert_raises(Fila::InvalidArgumentError) { client.peek(queue: queue_name, count: count) }
    end
  end

  def test_redrive_needs_a_dead_letter_queue
    make_queue
    assert_raises(Fila::InvalidArgumentError) { client.redrive(dlq: queue_name) }
  end

  def test_explains_why_a_message_waits
    make_queue
    id = client.enqueue(queue: queue_name, delay_ms: 60_000)

    refute_empty client.explain(queue: queue_name, msg_id: id).reasons.to_a
  end

  def test_describes_the_server
    assert_operator client.describe.limits.max_payload_bytes, :>, 1_000_000
  end
end
