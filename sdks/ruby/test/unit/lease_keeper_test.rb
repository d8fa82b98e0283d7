# frozen_string_literal: true

require 'test_helper'

class LeaseKeeperTest < FilaTest
  # Notes what is extended, and refuses what it is told to.
  class Settler
    attr_reader :extended
    attr_accessor :refused, :failing

    def initialize
      @extended = Queue.new
      @refused = []
      @failing = 0
    end

    def post(settlement)
      raise ThreadError, 'no thread' if (@failing -= 1) >= 0

      @extended << [settlement.queue, settlement.lease_id, settlement.message_ids.sort]
      yield(@refused.to_h { |target| [target, Fila::MessageNotFoundError.new('gone')] })
    end
  end

  def setup
    @settler = Settler.new
    @keeper = Fila::LeaseKeeper.new(@settler)
  end

  def teardown
    @keeper.close
  end

  def test_extends_no_more_than_three_times_in_a_visibility_timeout
    took = timed do
      @keeper.add('q', 'lease', %w[a b], 0.3)
      3.times { assert_equal ['q', 'lease', %w[a b]], @settler.extended.pop }
    end

    assert_operator took, :>=, 0.3
  end

  def test_what_was_settled_is_extended_no_more
    @keeper.add('q', 'lease', %w[a b], 0.3)
    @keeper.forget('q', 'lease', ['a'])

    assert_equal ['q', 'lease', ['b']], @settler.extended.pop
    @keeper.forget('q', '', ['b'])
    @keeper.add('q', 'other', ['c'], 0.3)
    assert_equal([%w[other other other]], [Array.new(3) { @settler.extended.pop[1] }])
  end

  # However short the broker says that leases are, it is not flooded.
  def test_a_lease_is_not_extended_all_the_time
    took = timed do
      @keeper.add('q', 'lease', ['a'], 0.0001)
      4.times { @settler.extended.pop }
    end

    assert_operator took, :>=, 4 * Fila::LeaseKeeper::SHORTEST
  end

  def test_goes_on_when_the_system_has_no_thread
    @settler.failing = 2
    @keeper.add('q', 'lease', ['a'], 0.15)

    assert_equal ['q', 'lease', ['a']], @settler.extended.pop
  end

  def test_a_lease_that_has_ended_is_extended_no_more
    @settler.refused = [%w[q a]]
    @keeper.add('q', 'lease', %w[a b], 0.15)

    assert_equal [%w[a b], ['b']], (Array.new(2) { @settler.extended.pop.last })
  end

  def test_a_shorter_timeout_counts_at_once
    @keeper.add('q', 'lease', ['a'], 600)
    @keeper.change('q', 0.15)

    assert_equal ['q', 'lease', ['a']], @settler.extended.pop
  end

  def test_ends_its_thread
    before = Thread.list.size
    @keeper.add('q', 'lease', ['a'], 600)
    @keeper.close

    assert_equal before, Thread.list.size
    @keeper.add('q', 'lease', ['a'], 0.01)
    assert_empty @settler.extended
  end
end
