# frozen_string_literal: true

require 'test_helper'

class BackoffTest < FilaTest
  # Chance that always says the most.
  class Most
    def self.rand(range)
      range.end
    end
  end

  def test_doubles_from_20_ms_to_1_s
    backoff = Fila::Backoff.new(random: Most)
    waits = Array.new(8) { backoff.next_wait }

    assert_equal [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0], waits
    backoff.reset
    assert_in_delta 0.02, backoff.next_wait
  end

  def test_jitter_takes_up_to_half
    waits = Array.new(100) { Fila::Backoff.new.next_wait }

    assert(waits.all? { |wait| wait.between?(0.01, 0.02) })
    assert_operator waits.uniq.size, :>, 1
  end

  def test_waits_at_least_as_long_as_the_broker_asks
    assert_in_delta 3.0, Fila::Backoff.new.next_wait(at_least: 3.0)
  end

  def test_never_waits_for_longer_than_a_minute
    assert_in_delta 60.0, Fila::Backoff.new.next_wait(at_least: 4_294_967.0)
  end
end
