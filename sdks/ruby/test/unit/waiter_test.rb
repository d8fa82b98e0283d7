# frozen_string_literal: true

require 'test_helper'

class WaiterTest < FilaTest
  def test_the_first_outcome_counts_and_is_told_once
    told = []
    waiter = Fila::Waiter.new(now + 5) { |state, outcome| told << [state, outcome] }
    waiter.answer(1)
    waiter.fail(Fila::InternalError.new('late'))

    assert_equal(1, waiter.result { flunk })
    assert_equal [[:answered, 1]], told
  end

  def test_raises_what_it_failed_with
    waiter = Fila::Waiter.new(now + 5)
    waiter.fail(Fila::InternalError.new('broken'))

    assert_raises(Fila::InternalError) { waiter.result { flunk } }
  end

  def test_gives_up_at_the_deadline
    waiter = Fila::Waiter.new(now + 0.05)

    assert_raises(Fila::TimeoutError) { waiter.result { Fila::TimeoutError.new } }
    refute_predicate waiter, :waits?
  end

  def test_an_interrupted_caller_waits_no_more
    waiter = Fila::Waiter.new(now + 60)

    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { waiter.result { flunk } } }
    refute_predicate waiter, :waits?
  end

  # One refusal may be that of a whole batch.
  def test_each_raises_a_copy_of_a_shared_error
    error = Fila::InternalError.new('broken')
    raised = Array.new(2) do
      waiter = Fila::Waiter.new(now + 5)
      waiter.fail(error)
      assert_raises(Fila::InternalError) { waiter.result { flunk } }
    end

    refute_same(*raised)
    assert_equal [:INTERNAL, 'broken'], [raised.last.kind, raised.last.message]
    assert_nil error.backtrace
  end
end
