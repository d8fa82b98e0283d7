# frozen_string_literal: true

module Fila
  # How long to wait before the next attempt: doubles, with jitter, so that clients do not come back all at once.
  # @api private
  class Backoff
    FIRST = 0.02
    MOST = 1.0
    # A broker that asks for more is asked again nevertheless.
    MOST_ASKED = 60.0

    def initialize(random: Random)
      @random = random
      reset
    end

    def reset
      @next = FIRST
    end

    # @param at_least [Float] what the broker asked for
    def next_wait(at_least: 0.0)
      wait = @next * @random.rand(0.5..1.0)
      @next = [@next * 2, MOST].min
      [wait, [at_least, MOST_ASKED].min].max
    end
  end
end
