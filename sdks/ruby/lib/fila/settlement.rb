# frozen_string_literal: true

module Fila
  # What to do with one delivered message, or with the leases of several.
  # @api private
  Settlement = Struct.new(:action, :queue, :lease_id, :message_ids, :error, :delay_ms, keyword_init: true) do
    def targets
      message_ids.map { |id| [queue, id] }
    end

    # What cannot be encoded must not reach the stream, which others share. Answers name messages in UTF-8.
    # @return [Settlement] itself
    # @raise [InvalidArgumentError]
    def check
      self.queue = Text.check(queue)
      self.lease_id = Text.check(lease_id)
      self.message_ids = message_ids.map { |id| Text.check(id) }
      self.error = Text.cleaned(error)
      return self if delay_ms.is_a?(Integer) && delay_ms.between?(0, Settlement::MOST_MS)

      raise InvalidArgumentError, "#{delay_ms.inspect} is no number of milliseconds"
    end
  end

  # What the field of the contract holds.
  Settlement::MOST_MS = (2**63) - 1

  # Settlements of one caller. The answer is a Hash of those that failed: [queue, message id] => Error.
  # @api private
  class Settle < Waiter
    attr_reader :settlements

    def initialize(settlements, deadline, &on_finish)
      super(deadline, &on_finish)
      @settlements = settlements
    end

    def targets
      @targets ||= @settlements.flat_map(&:targets)
    end
  end
end
