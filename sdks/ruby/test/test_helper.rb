# frozen_string_literal: true

require 'fila'
require 'minitest'
require 'securerandom'
require 'timeout'
require 'tmpdir'
require_relative 'support/server'
require_relative 'support/fake_broker'
require_relative 'support/scripted_streams'
require_relative 'support/certificates'

# Helpers of all tests. No test may take longer than {LIMIT}: it finds out what hangs, on a slow machine too.
class FilaTest < Minitest::Test
  LIMIT = 120

  def capture_exceptions(&block)
    super { Timeout.timeout(LIMIT, &block) }
  end

  # A queue name that no other test has.
  def queue_name
    @queue_name ||= "#{name}-#{SecureRandom.hex(4)}"
  end

  def eventually(within: 60)
    ends = now + within
    until (found = yield)
      flunk "not within #{within} s" if now > ends
      sleep 0.01
    end
    found
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def timed
    began = now
    yield
    now - began
  end
end

# A test with a client of the server that all tests share, and a queue of its own.
class ServerTest < FilaTest
  attr_reader :client

  def setup
    @client = Fila::Client.new(FilaServer.shared.address, timeout: 60)
  end

  def teardown
    client.close
  end

  def make_queue(**settings)
    client.create_queue(queue: queue_name, **settings)
    queue_name
  end

  def depth(queue = queue_name)
    client.stats(queue: queue).summary.depth
  end

  # The messages of a queue, each acked.
  def drain(queue, count, from: client)
    consumer = from.consume(queue: queue)
    consumer.lazy.map { |message| message.tap(&:ack) }.first(count)
  ensure
    consumer&.stop
  end
end
