# frozen_string_literal: true

require 'test_helper'

class SendWindowTest < FilaTest
  def setup
    @window = Fila::SendWindow.new
    @made = 0
  end

  def test_only_two_small_batches_are_in_flight
    assert_equal [1, 2], fill('x')
    @window.answered(1)
    assert_equal [3], fill('x')
  end

  def test_an_answer_with_another_number_answers_nothing
    assert_nil @window.answered(1)
    fill('x')
    assert_nil @window.answered(2)
    assert_equal 1, @window.answered(1).sequence
  end

  def test_eight_large_batches_are_in_flight
    assert_equal (1..8).to_a, fill('x' * Fila::SendWindow::SMALL_BYTES)
  end

  def test_after_a_loss_the_same_batches_go_first_in_their_order
    fill('x')
    @window.lost
    again = @window.next(0.0) { flunk 'a new batch before the old ones' }

    assert_equal [1, true], [again.sequence, again.resent]
    assert_nil(@window.next(0.0) { flunk }, 'it is sent again alone')
    @window.answered(1)
    assert_equal 2, @window.next(0.0) { flunk }.sequence
    assert_nil(@window.next(0.0) { flunk }, 'it is sent again alone')
    @window.answered(2)
    assert_predicate @window, :empty?
  end

  def test_an_answered_batch_that_is_taken_back_comes_again_before_all_others
    fill('x')
    @window.lost
    @window.next(0.0) { flunk }
    @window.again(@window.answered(1))

    assert_nil(@window.next(0.0) { flunk }, 'nothing overtakes it')
    @window.lost
    assert_equal 1, @window.next(0.0) { flunk }.sequence
  end

  def test_only_what_was_sent_before_comes_again_when_it_is_refused_for_a_while
    made = batch('x')
    for_a_while = Fila::OverloadedError.new(retryable: true)

    refute made.comes_again?(for_a_while)
    made.resent = true
    assert made.comes_again?(for_a_while)
    refute made.comes_again?(Fila::InvalidArgumentError.new)
  end

  def test_a_batch_that_nobody_waits_for_is_not_sent_again
    first, = Array.new(2) { @window.next(0.0) { batch('x') } }
    first.waiters.each(&:abandon)
    @window.lost

    assert_equal 2, @window.next(0.0) { flunk }.sequence
  end

  def test_a_refused_stream_blames_a_batch_only_if_it_was_alone
    fill('x')

    assert_nil @window.refused
    assert_equal 1, @window.next(0.0) { flunk }.sequence
    assert_nil(@window.next(0.0) { flunk 'two at once while looking for the one to blame' })
    assert_equal 1, @window.refused.sequence
    assert_equal 2, @window.next(0.0) { flunk }.sequence
  end

  def test_a_batch_of_a_lost_stream_is_older_than_its_first_sending
    @window.next(10.0) { batch('x') }

    assert_empty @window.older(20.0), 'it is in flight'
    @window.lost
    @window.next(15.0) { flunk }
    @window.lost

    assert_empty @window.older(10.0)
    assert_equal [1], @window.older(11.0).map(&:sequence)
    assert_predicate @window, :empty?
  end

  def test_clear_gives_back_all
    fill('x')
    @window.lost
    @window.next(0.0) { flunk }

    assert_equal [1, 2], @window.clear.map(&:sequence)
    assert_predicate @window, :empty?
  end

  private

  def batch(data)
    Fila::Batch.new(data, [Fila::Waiter.new(now + 60)], @made += 1, false)
  end

  def fill(data)
    sequences = []
    while (made = @window.next(0.0) { batch(data) })
      sequences << made.sequence
    end
    sequences
  end
end
