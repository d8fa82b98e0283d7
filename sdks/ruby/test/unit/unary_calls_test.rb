# frozen_string_literal: true

require 'test_helper'

# When something is tried again, and when not.
class UnaryCallsTest < FilaTest
  # A member without others.
  class Lone
    def address = 'here'
    def follow(_error, _address) = false
  end

  def test_the_last_refusal_is_told_when_one_more_attempt_could_not_be_answered_in_time
    attempts = 0
    assert_raises(Fila::QueueFullError) do
      Fila::UnaryCalls.new(Lone.new).retrying(Fila::Clock.now + Fila::UnaryCalls::ENOUGH) do
        attempts += 1
        raise full
      end
    end
    assert_equal 1, attempts
  end

  def test_what_may_succeed_later_is_tried_again_while_there_is_time
    attempts = 0
    Fila::UnaryCalls.new(Lone.new).retrying(Fila::Clock.now + 60) do
      attempts += 1
      raise full if attempts < 3
    end
    assert_equal 3, attempts
  end

  private

  def full = Fila::QueueFullError.new('full', kind: :QUEUE_FULL, retryable: true)
end
