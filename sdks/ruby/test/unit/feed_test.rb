# frozen_string_literal: true

require 'test_helper'

# A feed on a stream that the test moves by hand.
class FeedTest < FilaTest
  V1 = Fila::V1

  # What a test interrupts with.
  class Stop < StandardError; end

  # A connection with one stream, which delivers what it is given and writes reports only when it is told to.
  class ByHand
    attr_reader :requests, :status, :metadata

    def initialize
      @responses = Queue.new
    end

    def check; end

    def forked?
      false
    end

    def address
      'host:1'
    end

    def stream(_name, requests, _response, address:, &block)
      raise 'another stream' if @requests

      @address = address
      @requests = requests
      @deliver = block
      self
    end

    def execute
      while (response = @responses.pop)
        @deliver.call(response)
      end
    end

    def cancel
      @status = :cancelled
      @responses.close
    end

    def respond(*ids, isolated: false)
      isolation = isolated ? :ISOLATION_SUSPECT : :ISOLATION_UNSPECIFIED
      metadata = V1::MessageMetadata.new(lease_id: 'lease', isolation: isolation)
      messages = ids.map { |id| V1::Message.new(id: id, metadata: metadata) }
      @responses << V1::ConsumeResponse.new(messages: messages)
    end

    # Runs the writer until the stream ends.
    def write
      Thread.new { @requests.each(&:itself) }
    end
  end

  def setup
    @connection = ByHand.new
    keeper = Fila::LeaseKeeper.new(nil)
    @feed = Fila::Feed.new(nil, @connection, nil, keeper, queue: 'q', max_in_flight: 10, auto_extend: true)
  end

  def teardown
    @feed.begin_stop
    @connection.cancel
    @feed.stop
  end

  # It must be reported before the application has it, so the caller waits; and may be interrupted.
  def test_whoever_is_interrupted_before_a_message_is_reported_does_not_take_it
    @connection.respond('a', isolated: true)
    eventually { @feed.waiting == 1 }
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { @feed.pop(nil) } }
    assert_nil @feed.pop(0.01)
    @connection.write

    assert_equal 'a', @feed.pop(nil).id
    assert_nil @feed.pop(0)
  end

  def test_whoever_is_interrupted_while_taking_a_message_does_not_take_it
    @connection.respond('a', 'b')
    eventually { @feed.waiting == 2 }
    interrupted_while_taking(Thread.current) { assert_raises(Stop) { @feed.pop(nil) } }

    assert_equal %w[a b], [@feed.pop(nil).id, @feed.pop(nil).id]
  end

  def test_a_message_that_was_put_back_counts_as_handed_once
    @connection.respond('a', 'b')
    eventually { @feed.waiting == 2 }
    interrupted_while_taking(Thread.current) { assert_raises(Stop) { @feed.pop(nil) } }
    2.times { @feed.pop(nil) }

    assert_equal 2, @connection.requests.handed
  end

  def test_what_a_stopped_consumer_had_is_not_handed_out
    @connection.respond('a')
    eventually { @feed.waiting == 1 }
    @feed.let_go

    eventually { @connection.requests.stopping }
    assert_predicate @feed, :stopped?
    @feed.begin_stop
    assert_nil @feed.pop(nil)
  end

  def test_each_learns_by_an_error_of_its_own_that_the_broker_refuses
    refused = GRPC::BadStatus.new(GRPC::Core::StatusCodes::UNIMPLEMENTED, 'no such thing')
    @connection.define_singleton_method(:execute) { raise refused }
    feed = Fila::Feed.new(nil, @connection.clone.tap { |made| made.instance_variable_set(:@requests, nil) }, nil,
                          Fila::LeaseKeeper.new(nil), queue: 'q', max_in_flight: 1, auto_extend: true)

    refute_same(*Array.new(2) { assert_raises(Fila::InternalError) { feed.pop(nil) } })
  end

  private

  # Raises in the thread while it removes a message from what is prefetched.
  def interrupted_while_taking(thread)
    prefetch = @feed.instance_variable_get(:@prefetch)
    prefetch.define_singleton_method(:shift) do
      found = super()
      interrupting = Thread.new { thread.raise(Stop) }
      Thread.pass while interrupting.alive?
      found
    end
    yield
  ensure
    prefetch.singleton_class.remove_method(:shift)
  end
end
