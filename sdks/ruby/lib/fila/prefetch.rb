# frozen_string_literal: true

module Fila
  # What a consumer has prefetched, in the order of delivery, and the extension of its leases. Its owner locks.
  # @api private
  class Prefetch
    # A message, its stream, and which one of the stream it is once it is counted as handed.
    Delivery = Struct.new(:message, :stream, :number)

    def initialize(keeper, queue, auto_extend)
      @keeper = keeper
      @queue = queue
      @auto_extend = auto_extend
      @visibility_ms = 0
      @deliveries = []
    end

    def size
      @deliveries.size
    end

    def empty?
      @deliveries.empty?
    end

    # The oldest, removed; nil: there is none.
    def shift
      @deliveries.shift
    end

    # It is the oldest again.
    def put_back(delivery)
      @deliveries.unshift(delivery)
    end

    # There are more than the credit when leases of earlier ones have ended, or the broker does not keep to it. The
    # newest stay. Reports count in the order of delivery, so the others count as handed.
    def add(messages, stream)
      keep(messages)
      @deliveries.concat(messages.map { |message| Delivery.new(message, stream) })
      excess = @deliveries.shift([size - stream.most, 0].max)
      excess.each { |delivery| delivery.number ||= delivery.stream.hand }
      forget(excess.map(&:message))
    end

    # Remove and return the messages.
    def clear
      dropped = @deliveries.map(&:message)
      @deliveries = []
      forget(dropped)
      dropped
    end

    # Their leases are extended no more.
    def forget(messages)
      each_lease(messages) { |lease_id, ids| @keeper.forget(@queue, lease_id, ids) }
    end

    # How long leases last.
    def visibility_ms=(told)
      return if told == @visibility_ms || !told.positive?

      @visibility_ms = told
      @keeper.change(@queue, told / 1000.0)
    end

    # Yields the id of a lease, and those of the messages that it covers.
    def each_lease(messages)
      messages.group_by(&:lease_id).each { |lease_id, group| yield lease_id, group.map(&:id).uniq }
    end

    private

    def keep(messages)
      return unless @auto_extend && @visibility_ms.positive?

      each_lease(messages) { |lease_id, ids| @keeper.add(@queue, lease_id, ids, @visibility_ms / 1000.0) }
    end
  end
end
