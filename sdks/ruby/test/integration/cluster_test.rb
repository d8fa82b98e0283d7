# frozen_string_literal: true

require 'test_helper'

# What a client does when another member of a cluster has the queue, or when a member goes away.
class ClusterTest < FilaTest
  V1 = Fila::V1
  DESCRIBE = ->(*) { V1::DescribeResponse.new(version: 'owner') }

  def test_a_call_follows_to_the_owner
    FakeBroker.run(describe: DESCRIBE) do |owner|
      FakeBroker.run(describe: refusing(owner.address)) do |member|
        with_client(member.address) do |client|
          assert_equal 'owner', client.describe.version
          assert_equal 'owner', client.describe.version
        end
        assert_equal 1, member.calls.size, 'the next call goes to the owner directly'
      end
    end
  end

  # The fifth refusal is waited for, and there is no time for that.
  def test_follows_at_most_four_times_in_a_row_without_a_pause
    broker = nil
    refuse = lambda do |*|
      # Each time the other name of the same server.
      raise FakeBroker.refusal(:NOT_OWNER, retryable: true, retry_after_ms: 60_000, owner: named(broker))
    end
    FakeBroker.run(describe: refuse) do |running|
      broker = running
      with_client(running.address) { |client| assert_raises(Fila::UnavailableError) { client.describe(timeout: 50) } }
      assert_equal 5, running.calls.size
    end
  end

  # A member that passes a call on tells who has answered: the next call goes there.
  def test_a_call_that_was_passed_on_shows_the_way
    FakeBroker.run(describe: DESCRIBE) do |owner|
      passing = lambda do |_, call|
        call.output_metadata['fila-owner'] = owner.address
        V1::DescribeResponse.new(version: 'member')
      end
      FakeBroker.run(describe: passing) do |member|
        with_client(member.address) do |client|
          assert_equal %w[member owner], [client.describe.version, client.describe.version]
        end
      end
    end
  end

  def test_a_message_follows_the_owner_that_its_result_names
    FakeBroker.run(enqueue_stream: answering { |_| V1::EnqueueResult.new(message_id: 'there') }) do |owner|
      moved = V1::Error.new(kind: :ERROR_KIND_NOT_OWNER, code: 14, retryable: true, owner: owner.address)
      FakeBroker.run(enqueue_stream: answering { |_| V1::EnqueueResult.new(error: moved) }) do |member|
        with_client(member.address) { |client| assert_equal 'there', client.enqueue(queue: 'q') }
      end
    end
  end

  def test_a_stream_follows_the_owner
    FakeBroker.run(enqueue_stream: answering { |_| V1::EnqueueResult.new(message_id: 'there') }) do |owner|
      FakeBroker.run(enqueue_stream: refusing(owner.address)) do |member|
        with_client(member.address) { |client| assert_equal 'there', client.enqueue(queue: 'q') }
      end
    end
  end

  def test_a_member_that_shuts_down_is_left
    FakeBroker.run(describe: DESCRIBE) do |other|
      stopping = ->(*) { raise FakeBroker.refusal(:SHUTTING_DOWN, retryable: true) }
      FakeBroker.run(describe: stopping) do |member|
        with_client([member.address, other.address]) { |client| assert_equal 'owner', client.describe.version }
      end
    end
  end

  def test_a_call_that_would_change_something_twice_is_not_sent_again
    lost = ->(*) { raise GRPC::Unavailable, 'lost' }
    FakeBroker.run(create_queue: lost) do |broker|
      with_client(broker.address) do |client|
        error = assert_raises(Fila::UnavailableError) { client.create_queue(queue: 'q') }
        refute_predicate error, :retryable?
      end
      assert_equal 1, broker.calls.size
    end
  end

  def test_waits_as_long_as_the_broker_asks
    times = []
    busy = lambda do |*|
      times << now
      raise FakeBroker.refusal(:QUOTA_EXCEEDED, code: 8, retryable: true, retry_after_ms: 300) if times.size == 1

      V1::DescribeResponse.new
    end
    FakeBroker.run(describe: busy) { |broker| with_client(broker.address, &:describe) }

    assert_operator times[1] - times[0], :>=, 0.3
  end

  # A key that has ended is tried once more, since its file may hold another; then it is an error.
  def test_an_ended_key_is_tried_twice
    ended = ->(*) { raise FakeBroker.refusal(:KEY_ENDED, code: GRPC::Core::StatusCodes::UNAUTHENTICATED) }
    FakeBroker.run(enqueue_stream: ended) do |broker|
      with_client(broker.address) do |client|
        assert_equal :KEY_ENDED, assert_raises(Fila::PermissionDeniedError) { client.enqueue(queue: 'q') }.kind
      end
      assert_equal 2, broker.calls.size
    end
  end

  private

  def with_client(addresses)
    client = Fila::Client.new(addresses, timeout: 60)
    yield client
  ensure
    client&.close
  end

  def refusing(owner)
    ->(*) { raise FakeBroker.refusal(:NOT_OWNER, retryable: true, owner: owner) }
  end

  def answering(&block)
    lambda do |requests, *|
      requests.lazy.map do |request|
        V1::EnqueueBatchResponse.new(sequence: request.sequence, results: request.messages.map(&block))
      end
    end
  end

  def named(broker)
    broker.calls.size.odd? ? broker.address.sub('127.0.0.1', 'localhost') : broker.address
  end
end
