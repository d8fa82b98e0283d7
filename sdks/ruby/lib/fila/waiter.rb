# frozen_string_literal: true

module Fila
  # Somebody who waits for an answer. The first outcome counts.
  # @api private
  class Waiter
    attr_reader :deadline
    # @return [Boolean] whether the request may have reached the broker
    attr_accessor :sent

    # @yield [state, outcome] once, when the waiting is over
    def initialize(deadline, &on_finish)
      @on_finish = on_finish
      @deadline = deadline
      @lock = Mutex.new
      @done = ConditionVariable.new
      @state = :waiting
    end

    def waits?
      @state == :waiting && Clock.now < @deadline
    end

    def answer(value)
      finish(:answered, value)
    end

    def fail(error)
      finish(:failed, error)
    end

    # Nobody waits any more.
    def abandon
      finish(:abandoned, nil)
    end

    # @return the answer
    # @raise [Error] why there is none
    # @yieldreturn [Error] what to raise when the time is over
    def result
      @lock.synchronize do
        while @state == :waiting && (left = @deadline - Clock.now).positive?
          @done.wait(@lock, left)
        end
      end
      case @state
      when :answered then @outcome
      # A copy: many may have failed with the same error, and each has a backtrace of its own.
      when :failed then raise @outcome.dup
      else raise yield
      end
    ensure
      # An interrupted or late caller takes no answer any more: a batch that nobody waits for is not sent again.
      abandon
    end

    private

    def finish(state, outcome)
      @lock.synchronize do
        return unless @state == :waiting

        @outcome = outcome
        @state = state
        @done.broadcast
      end
      @on_finish&.call(state, outcome)
    end
  end
end
