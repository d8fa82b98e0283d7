# frozen_string_literal: true

module Fila
  # One request on a stream, for several callers.
  # @api private
  Batch = Struct.new(:data, :waiters, :sequence, :resent, :sent_at) do
    def fail(error)
      waiters.each { |waiter| waiter.fail(error) }
    end

    def abandoned?
      waiters.none?(&:waits?)
    end

    # Whether it has to come again under its number when the broker refuses it as a whole. Nothing was done now. But
    # what was sent before may have been carried out, and only its number tells.
    def comes_again?(refusal)
      resent && refusal.retryable?
    end
  end

  # The batches that were made and not yet answered: which one goes onto the wire next. No stream, no clock.
  #
  # - Batches leave in the order in which they were made, and are answered in that order.
  # - Only two are in flight while the last one is small: requests that arrive meanwhile then travel together.
  # - After a lost stream the batches in flight go first onto the next one, the same bytes in the same order.
  # - A batch that may have been carried out is sent again alone. If the broker has no time for it, it comes once more
  #   under its number, before a higher number gets through.
  # - A batch that nobody waits for any more is not sent again, and its number is never used again. Neither is one that
  #   the broker may not know any more: its callers are told.
  # - When the broker refuses a whole stream, the batch to blame is known only if it was alone in flight. So from then
  #   on batches are sent one at a time, until the window is empty.
  # @api private
  class SendWindow
    MOST = 8
    MOST_SMALL = 2
    SMALL_BYTES = 64 << 10

    def initialize
      @in_flight = []
      @resend = []
      @probing = false
    end

    def empty?
      @in_flight.empty? && @resend.empty?
    end

    def in_flight?
      !@in_flight.empty?
    end

    # The batch to write now: one to send again, else a new one from the block. nil: there is none, or no room.
    # @param now [Float] the time
    def next(now)
      @probing = false if empty?
      return nil if @in_flight.size >= room

      batch = left_over || yield
      return nil unless batch

      batch.sent_at ||= now
      @in_flight << batch
      batch
    end

    # Remove and return the batches of earlier streams that were first sent before that.
    def older(than)
      return [] if @resend.empty?

      old, @resend = @resend.partition { |batch| batch.sent_at < than }
      old
    end

    # The batch that the next answer belongs to. nil: the answer has another number than the batch.
    def answered(sequence)
      @in_flight.shift if @in_flight.first&.sequence == sequence
    end

    # Take an answered batch back: it is not done.
    def again(batch)
      @in_flight.unshift(batch)
    end

    # The connection was lost: send again what was in flight.
    def lost
      @in_flight.each { |batch| batch.resent = true }
      @resend = @in_flight + @resend
      @in_flight = []
    end

    # The broker ended the stream with a refusal. Returns the batch to blame, if that is certain.
    def refused
      blamed = @in_flight.shift if @in_flight.size == 1
      @probing ||= !@in_flight.empty?
      lost
      blamed
    end

    # Remove and return all.
    def clear
      all = @in_flight + @resend
      @in_flight = []
      @resend = []
      all
    end

    private

    def room
      last = @in_flight.last
      return 1 if @probing || !@resend.empty? || last&.resent

      last && last.data.bytesize < SMALL_BYTES ? MOST_SMALL : MOST
    end

    def left_over
      while (batch = @resend.shift)
        return batch unless batch.abandoned?
      end
    end
  end
end
