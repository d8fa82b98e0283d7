# frozen_string_literal: true

require 'test_helper'

class ClockTest < FilaTest
  def test_a_deadline_is_so_many_seconds_from_now
    assert_operator Fila::Clock.deadline(60), :>, now + 50
    assert_operator Fila::Clock.deadline(0), :<=, now
    assert_operator Fila::Clock.deadline(Rational(1, 2)), :<, now + 1
  end

  def test_infinity_is_a_year
    [Float::INFINITY, 1e300].each { |long| assert_operator Fila::Clock.deadline(long), :<=, now + Fila::Clock::YEAR }
  end

  def test_refuses_what_is_no_timeout
    [nil, 'x', -1, -0.1, Float::NAN, Complex(1, 1), :soon].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::Clock.deadline(wrong) }
    end
  end
end
