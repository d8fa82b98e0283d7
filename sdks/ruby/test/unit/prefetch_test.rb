# frozen_string_literal: true

require 'test_helper'

class PrefetchTest < FilaTest
  # Notes which leases are extended.
  class Keeper
    attr_reader :kept

    def initialize
      @kept = []
    end

    def add(_queue, _lease_id, ids, _visibility)
      @kept |= ids
    end

    def forget(_queue, _lease_id, ids)
      @kept -= ids
    end

    def change(*); end
  end

  def setup
    @keeper = Keeper.new
    @prefetch = Fila::Prefetch.new(@keeper, 'q', true)
    @prefetch.visibility_ms = 1000
    @stream = Fila::ConsumeStream.new(Mutex.new, ConditionVariable.new, 'q', 3)
  end

  def test_messages_come_out_in_their_order
    add(%w[a b c])

    assert_equal(%w[a b c], Array.new(3) { @prefetch.shift.message.id })
    assert_nil @prefetch.shift
  end

  def test_what_was_put_back_is_the_next_one_again
    add(%w[a b])
    @prefetch.put_back(@prefetch.shift)

    assert_equal 'a', @prefetch.shift.message.id
  end

  # Leases of the first ones have ended, or the broker does not keep to the credit: memory is bounded by it.
  def test_of_more_than_the_credit_the_newest_stay
    add(%w[a b c])
    add(%w[d e])

    assert_equal 3, @prefetch.size
    assert_equal %w[c d e], @keeper.kept
    # Reports count in the order of delivery.
    assert_equal 2, @stream.handed
    assert_equal 'c', @prefetch.shift.message.id
  end

  def test_the_largest_credit_of_a_stream_counts
    @stream.credit = 1
    add(%w[a b c])

    assert_equal 3, @prefetch.size
    @stream.credit = 4
    add(%w[d])
    assert_equal 4, @prefetch.size
  end

  def test_what_was_dropped_is_extended_no_more
    add(%w[a b])

    assert_equal %w[a b], @prefetch.clear.map(&:id)
    assert_empty @keeper.kept
    assert_predicate @prefetch, :empty?
  end

  def test_without_extension_and_without_a_known_timeout_no_lease_is_kept
    add(%w[a], to: Fila::Prefetch.new(@keeper, 'q', true))
    silent = Fila::Prefetch.new(@keeper, 'q', false)
    silent.visibility_ms = 1000
    add(%w[b], to: silent)

    assert_empty @keeper.kept
  end

  private

  def add(ids, to: @prefetch)
    messages = ids.map do |id|
      metadata = Fila::V1::MessageMetadata.new(lease_id: 'lease')
      Fila::ConsumeMessage.new(Fila::V1::Message.new(id: id, metadata: metadata), 'q', nil)
    end
    to.add(messages, @stream)
  end
end
