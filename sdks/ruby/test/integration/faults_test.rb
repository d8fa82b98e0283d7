# frozen_string_literal: true

require 'test_helper'

# Servers that die, stop and come back.
class FaultsTest < FilaTest
  def test_a_server_killed_while_producing_loses_nothing_and_takes_nothing_twice
    FilaServer.run do |server|
      with_client(server) do |client|
        client.create_queue(queue: 'q')
        done = Queue.new
        producers = Array.new(8) { |n| Thread.new { produce(client, n, 60, done) } }
        [100, 250].each do |count|
          eventually { done.size > count }
          server.kill
          server.start
        end
        ids = producers.flat_map(&:value)

        assert_equal 480, ids.uniq.size
        assert_equal ids.sort, consumed(client, 480).sort
        assert_equal 0, client.stats(queue: 'q').summary.depth
      end
    end
  end

  def test_consumers_go_on_when_the_server_was_killed
    FilaServer.run do |server|
      with_client(server) do |client|
        client.create_queue(queue: 'q')
        client.enqueue(queue: 'q', payload: 'before')
        consumer = client.consume(queue: 'q')
        held = consumer.pop
        server.kill
        server.start
        client.enqueue(queue: 'q', payload: 'after')
        assert_equal 'after', consumer.pop(timeout: 60).tap(&:ack).payload
        # Its lease has outlived the server.
        held.ack
        left = client.stats(queue: 'q').summary
        assert_equal [0, 0], [left.depth, left.in_flight]
      end
    end
  end

  def test_a_server_that_stops_and_comes_back_is_waited_for
    FilaServer.run do |server|
      with_client(server) do |client|
        client.create_queue(queue: 'q')
        client.enqueue(queue: 'q')
        server.terminate
        waiting = [Thread.new { client.enqueue(queue: 'q') }, Thread.new { client.stats(queue: 'q') }]
        eventually { waiting.all?(&:stop?) }
        server.start

        waiting.each { |thread| assert thread.value }
        assert_equal 2, client.stats(queue: 'q').summary.depth
      end
    end
  end

  def test_the_next_address_is_used_when_one_is_lost
    FilaServer.run do |server|
      dead = "127.0.0.1:#{FilaServer.free_port}"
      client = Fila::Client.new([dead, server.address], timeout: 60)
      client.create_queue(queue: 'q')
      client.enqueue(queue: 'q', payload: 'x')
      client.consume(queue: 'q') { |message| break message.ack }

      assert_equal 0, client.stats(queue: 'q').summary.depth
      client.close
    end
  end

  def test_without_a_server_a_call_ends_at_its_deadline
    client = Fila::Client.new("127.0.0.1:#{FilaServer.free_port}", timeout: 2)
    [-> { client.enqueue(queue: 'q') }, -> { client.describe }].each do |call|
      assert_equal :UNAVAILABLE, assert_raises(Fila::UnavailableError, &call).kind
    end
    consumer = client.consume(queue: 'q')
    assert_nil consumer.pop(timeout: 0.2)
    client.close
  end

  private

  def with_client(server)
    client = Fila::Client.new(server.address, timeout: 100)
    yield client
  ensure
    client&.close
  end

  def produce(client, number, count, done)
    Array.new(count) do |index|
      client.enqueue(queue: 'q', payload: "#{number} #{index}").tap { |id| done << id }
    end
  end

  def consumed(client, count)
    consumer = client.consume(queue: 'q')
    Array.new(count) { consumer.pop(timeout: 60)&.tap(&:ack)&.id }
  ensure
    consumer.stop
  end
end
