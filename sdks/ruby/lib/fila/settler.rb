# frozen_string_literal: true

module Fila
  # Settles messages: concurrent calls travel together, in batches on one stream.
  # @api private
  class Settler
    # How long a settlement that nobody waits for is tried.
    UNWATCHED = 5.0

    def initialize(connection, calls)
      @calls = calls
      @stream = BatchStream.new(connection, 'Settle', V1::SettleResponse, SettleCodec.new)
    end

    # @param settlement [Settlement] that was checked
    # @raise [Error]
    def settle(settlement, deadline)
      @calls.retrying(deadline) do
        settle = Settle.new([settlement], deadline)
        @stream.submit(settle)
        error = settle.result { @stream.too_late(settle) }.values.first
        raise error if error
      end
    end

    # Settle without waiting. What is too much for one request is settled in several. The block gets what failed of
    # each, if the broker answered.
    def post(settlement)
      settlement.message_ids.each_slice(SettleCodec::MAX_MESSAGES) do |ids|
        part = settlement.dup.tap { |copy| copy.message_ids = ids }
        @stream.submit(Settle.new([part], Clock.now + UNWATCHED) do |state, failures|
          yield failures if state == :answered && block_given?
        end)
      end
    rescue ClosedError
      # Leases end by themselves.
    end

    def close
      @stream.close
    end
  end
end
