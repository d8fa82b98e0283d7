# frozen_string_literal: true

require 'test_helper'

# A client that was closed leaves nothing behind: no thread, no connection, no open file.
class LeakTest < FilaTest
  def test_clients_that_were_closed_leave_nothing
    3.times { use_a_client }
    before = resources
    10.times { use_a_client }

    eventually { resources.zip(before).all? { |now, then_| now <= then_ } }
  end

  private

  def use_a_client
    Fila::Client.open(FilaServer.shared.address) do |client|
      queue = "leak-#{SecureRandom.hex(4)}"
      client.create_queue(queue: queue)
      client.enqueue_many(queue: queue, messages: %w[a b c])
      client.consume(queue: queue) { |message| break message.ack }
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { client.consume(queue: queue) { sleep } } }
      client.consume(queue: queue).next.release
      assert_raises(Fila::QueueNotFoundError) { client.consume(queue: 'nowhere').pop }
    end
  end

  def resources
    [Thread.list.size, Dir.children('/proc/self/fd').size]
  end
end
