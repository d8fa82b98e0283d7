# frozen_string_literal: true

module Fila
  # The requests of one Consume call: the first one, reports of what was handed, and the half-close.
  #
  # `each` is called by the writing thread of gRPC. Everything else holds the lock of the consumer.
  # @api private
  class ConsumeStream
    # The broker learns within this time what the application was handed.
    REPORT_EVERY = 0.005
    # How often a writer without work looks whether the broker has ended the stream: gRPC does not tell it.
    LOOK_EVERY = 1.0
    # More than any broker gives.
    MOST_CREDIT = (2**32) - 1

    # @return [Integer] the credit
    # @raise [InvalidArgumentError]
    def self.checked(credit)
      return credit if credit.is_a?(Integer) && credit.between?(0, MOST_CREDIT)

      raise InvalidArgumentError, "max_in_flight is a number from 0 to #{MOST_CREDIT}"
    end

    # @return [Integer] the largest credit of this stream
    attr_reader :most
    attr_reader :handed, :written, :writer
    attr_accessor :operation, :over, :stopping, :timed

    def initialize(lock, changed, queue, credit)
      @lock = lock
      @changed = changed
      @queue = queue
      @credit = @most = credit
      @handed = @written = 0
      @urgent = false
    end

    # One more message was handed. `urgent`: the report is to be written before the application has it.
    def hand(urgent: false)
      @handed += 1
      @urgent ||= urgent
      @changed.broadcast
      @handed
    end

    def credit=(credit)
      @new_credit = credit
      @most = [@most, credit].max
      @changed.broadcast
    end

    def each
      @writer = Thread.current
      yield encoded(queue: @queue, max_in_flight: @credit)
      while (handed, credit = next_report)
        yield encoded(**{ handed: handed, max_in_flight: credit }.compact)
        @lock.synchronize do
          @written = handed
          @changed.broadcast
        end
      end
    end

    private

    def encoded(**fields)
      V1::ConsumeRequest.encode(V1::ConsumeRequest.new(**fields))
    end

    # Waits until there is something to tell. nil: half-close.
    def next_report
      @lock.synchronize do
        @changed.wait(@lock, LOOK_EVERY) until over? || stopping || news?
        gather
        return nil if over? || (stopping && !news?)

        @urgent = false
        credit = @new_credit
        @new_credit = nil
        [@handed, credit]
      end
    end

    # A report counts all that was handed in the meantime, so waiting a little saves many.
    def gather
      ends = Clock.now + REPORT_EVERY
      until over? || stopping || @urgent || @new_credit || (left = ends - Clock.now) <= 0
        @changed.wait(@lock, left)
      end
    end

    def news?
      @handed > @written || !@new_credit.nil?
    end

    def over?
      over || !operation&.status.nil?
    end
  end
end
