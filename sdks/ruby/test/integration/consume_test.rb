# frozen_string_literal: true

require 'test_helper'

class ConsumeTest < ServerTest
  def test_stopping_costs_what_was_not_handed_no_attempt_and_what_is_held_can_be_settled
    make_queue
    client.enqueue_many(queue: queue_name, messages: (1..10).map(&:to_s))
    consumer = client.consume(queue: queue_name)
    held = consumer.first(2)
    eventually { consumer.waiting == 8 }
    consumer.stop

    assert_equal 8, depth
    held.each(&:ack)
    assert_equal [0] * 8, drain(queue_name, 8).map(&:attempt_count)
  end

  def test_a_block_that_breaks_stops_gracefully
    make_queue
    client.enqueue_many(queue: queue_name, messages: %w[a b c])
    first = client.consume(queue: queue_name) { |message| break message.tap(&:ack).payload }

    assert_equal 'a', first
    eventually { client.stats(queue: queue_name).summary.consumers.zero? }
    assert_equal [['b', 0], ['c', 0]], (drain(queue_name, 2).map { |found| [found.payload, found.attempt_count] })
  end

  # Extended for ever by a client that lives on, it would be hidden from all.
  def test_a_message_with_which_the_block_is_left_is_delivered_again
    make_queue(visibility_timeout_ms: 1000)
    ways = { 'raise' => -> { raise ArgumentError, 'cannot' }, 'not_implemented' => -> { raise NotImplementedError },
             'throw' => -> { throw :out }, 'timeout' => -> { Timeout.timeout(0.1) { sleep } },
             'kill' => -> { Thread.current.kill } }
    ways.each do |name, way|
      client.enqueue(queue: queue_name, payload: name)
      Thread.new { leave_a_block(&way) }.join

      assert_equal [[name, 1]], (drain(queue_name, 1).map { |found| [found.payload, found.attempt_count] })
    end
  end

  def test_a_message_that_a_loop_over_a_consumer_raises_of_is_delivered_again
    make_queue(visibility_timeout_ms: 1000)
    client.enqueue(queue: queue_name, payload: 'no number')
    consumer = client.consume(queue: queue_name)
    assert_raises(ArgumentError) { consumer.each { |message| Integer(message.payload) } }

    assert_equal 1, consumer.pop(timeout: 60).attempt_count
  end

  def test_never_more_than_the_credit_is_unsettled
    make_queue
    client.enqueue_many(queue: queue_name, messages: ['x'] * 10)
    consumer = client.consume(queue: queue_name, max_in_flight: 3)
    held = consumer.first(3)

    assert_nil consumer.pop(timeout: 0.2)
    held.first.ack
    assert consumer.pop(timeout: 60)
    consumer.max_in_flight = 5
    assert consumer.pop(timeout: 60)
    assert consumer.pop(timeout: 60)
    assert_nil consumer.pop(timeout: 0.2)
  end

  def test_leases_of_what_is_held_and_prefetched_are_extended
    make_queue(visibility_timeout_ms: 2000)
    client.enqueue_many(queue: queue_name, messages: %w[a b])
    consumer = client.consume(queue: queue_name)
    held = consumer.pop
    eventually { consumer.waiting == 1 }
    outlast_a_lease

    held.ack
    assert_equal ['b', 0], [consumer.pop.payload, client.stats(queue: queue_name).counters.expired]
  end

  # A settlement that was not even sent has settled nothing.
  def test_a_message_that_was_settled_with_a_wrong_argument_is_extended_still
    make_queue(visibility_timeout_ms: 2000)
    client.enqueue(queue: queue_name)
    held = client.consume(queue: queue_name).pop
    assert_raises(Fila::InvalidArgumentError) { held.nack(delay_ms: -1) }
    outlast_a_lease

    held.ack
    assert_equal 0, depth
  end

  def test_a_consumer_that_the_program_has_lost_hold_of_is_stopped
    make_queue
    client.enqueue_many(queue: queue_name, messages: ['x'] * 200)
    10.times { Thread.new { client.consume(queue: queue_name, max_in_flight: 5).first(1).each(&:ack) }.join }
    # The collector may take something on a stack for a reference.
    eventually(within: 30) do
      GC.start
      client.stats(queue: queue_name).summary.consumers <= 2
    end
    eventually { client.stats(queue: queue_name).summary.in_flight <= 10 }
  end

  def test_without_auto_extend_a_lease_ends
    make_queue(visibility_timeout_ms: 1000)
    client.enqueue(queue: queue_name)
    consumer = client.consume(queue: queue_name, auto_extend: false)
    held = consumer.pop
    again = consumer.pop(timeout: 60)

    assert_equal [held.id, 1], [again.id, again.attempt_count]
    assert_equal :LEASE_ENDED, assert_raises(Fila::MessageNotFoundError) { held.ack }.kind
    again.ack
  end

  def test_a_lease_can_be_extended_by_hand
    make_queue(visibility_timeout_ms: 2000)
    client.enqueue(queue: queue_name)
    held = client.consume(queue: queue_name, auto_extend: false).pop
    held.extend_lease(extend_ms: 60_000)
    outlast_a_lease

    held.ack
    assert_equal 0, depth
  end

  def test_several_threads_share_a_consumer
    make_queue
    client.enqueue_many(queue: queue_name, messages: ['x'] * 200)
    consumer = client.consume(queue: queue_name)
    threads = Array.new(5) do
      Thread.new do
        ids = []
        while (found = consumer.pop(timeout: 0.5))
          ids << found.tap(&:ack).id
        end
        ids
      end
    end

    assert_equal 200, threads.flat_map(&:value).uniq.size
    assert_equal 0, depth
  end

  def test_a_waiting_pop_ends_when_the_consumer_stops
    make_queue
    consumer = client.consume(queue: queue_name)
    waiting = Thread.new { consumer.pop }
    eventually { waiting.stop? }
    consumer.stop

    assert_nil waiting.value
    assert_predicate consumer, :stopped?
  end

  def test_closing_the_client_stops_its_consumers_gracefully
    make_queue
    client.enqueue_many(queue: queue_name, messages: %w[a b c])
    other = Fila::Client.new(FilaServer.shared.address)
    consumer = other.consume(queue: queue_name)
    eventually { consumer.waiting == 3 }
    other.close

    assert_equal [0, 0, 0], drain(queue_name, 3).map(&:attempt_count)
  end

  def test_a_queue_that_does_not_exist_is_told_at_the_first_message
    assert_raises(Fila::QueueNotFoundError) { client.consume(queue: 'nowhere').pop }
    assert_raises(Fila::QueueNotFoundError) { client.consume(queue: 'nowhere') { flunk } }
  end

  def test_a_deleted_queue_ends_its_consumers
    make_queue
    consumer = client.consume(queue: queue_name)
    eventually { client.stats(queue: queue_name).summary.consumers == 1 }
    client.delete_queue(queue: queue_name)

    assert_raises(Fila::QueueNotFoundError) { consumer.pop(timeout: 60) }
  end

  # The message of a consumer that died is delivered alone, and only after the broker knows that it was handed.
  def test_the_message_of_a_dead_consumer_comes_alone
    make_queue
    client.enqueue_many(queue: queue_name, messages: %w[deadly fine])
    die_with_one_message
    consumer = client.consume(queue: queue_name)
    found = consumer.first(1).first
    found = consumer.tap { found.ack }.pop(timeout: 60) unless found.isolated?

    assert_equal [true, 1, 'deadly'], [found.isolated?, found.attempt_count, found.payload]
    found.ack
  end

  private

  def leave_a_block(&way)
    catch(:out) { client.consume(queue: queue_name) { way.call } }
  rescue ArgumentError, NotImplementedError, Timeout::Error
    nil
  end

  # Waits until a lease has ended that is as long as that of the test, and began later.
  def outlast_a_lease
    queue = "#{queue_name}-clock"
    client.create_queue(queue: queue, visibility_timeout_ms: 2000)
    client.enqueue(queue: queue)
    consumer = client.consume(queue: queue, auto_extend: false)
    2.times { consumer.pop }
    consumer.stop
  end

  def die_with_one_message
    code = <<~RUBY
      require 'fila'
      client = Fila::Client.new(ARGV[0])
      consumer = client.consume(queue: ARGV[1], max_in_flight: 1)
      consumer.pop
      stream = consumer.instance_variable_get(:@feed).instance_variable_get(:@stream)
      Thread.pass until stream.written == 1
      # On the same connection: it is answered after the broker has the report.
      client.describe
      Process.kill(:KILL, Process.pid)
    RUBY
    lib = File.expand_path('../../lib', __dir__)
    system(RbConfig.ruby, '-I', lib, '-e', code, FilaServer.shared.address, queue_name)
  end
end
