# frozen_string_literal: true

module Fila
  # What to do after the end of a stream: where to go, and how long to wait before the next one. One for all streams
  # that follow each other; its owner locks.
  # @api private
  class Comeback
    def initialize(connection)
      @connection = connection
      @backoff = Backoff.new
      @hops = 0
      @key_ended = false
    end

    # An answer came: begin anew.
    def answered
      @backoff.reset
      @hops = 0
      @key_ended = false
    end

    # @return [Float] how long to wait
    def next_wait
      @backoff.next_wait
    end

    # The connection was lost.
    # @return [Float] how long to wait
    def after_loss(address)
      @connection.addresses.leave(address)
      next_wait
    end

    # @param error [Error] how the broker has ended the stream
    # @return [Float, nil] how long to wait; nil: it is refused for good
    def after_refusal(error, address)
      return nil unless error.retryable? || first_end_of_key?(error)

      moved = @connection.follow(error, address)
      return 0.0 if moved && error.kind == :NOT_OWNER && (@hops += 1) <= Addresses::MAX_HOPS

      @backoff.next_wait(at_least: error.retry_after)
    end

    private

    # A key that ended may have been replaced in its file: one more attempt.
    def first_end_of_key?(error)
      error.kind == :KEY_ENDED && !@key_ended && (@key_ended = true)
    end
  end
end
