# frozen_string_literal: true

require 'set'

module Fila
  # Extends the leases of messages that the application holds or that are prefetched, every third of the visibility
  # timeout. One thread for all consumers of a client, from the first message on.
  # @api private
  class LeaseKeeper
    TIMES = 3
    # How often a lease is extended at most, however short the broker says that leases are.
    SHORTEST = 0.05
    Lease = Struct.new(:ids, :every, :due)

    def initialize(settler)
      @settler = settler
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @leases = {}
      @closed = false
    end

    # @param visibility [Float] seconds
    def add(queue, lease_id, ids, visibility)
      @lock.synchronize do
        return if @closed

        every = third_of(visibility)
        lease = @leases[[queue, lease_id]] ||= Lease.new(Set.new, every, Clock.now + every)
        lease.ids.merge(ids)
        @thread ||= Thread.new { run }
        @changed.signal
      end
    end

    # The visibility timeout of a queue has changed.
    def change(queue, visibility)
      @lock.synchronize do
        @leases.each do |(of, _), lease|
          next unless of == queue

          lease.every = third_of(visibility)
          lease.due = [lease.due, Clock.now + lease.every].min
        end
        @changed.signal
      end
    end

    # These messages are settled or lost. Without a lease id: under whichever lease they are.
    def forget(queue, lease_id, ids)
      @lock.synchronize do
        keys = lease_id.empty? ? @leases.keys.select { |of, _| of == queue } : [[queue, lease_id]]
        keys.each do |key|
          lease = @leases[key] or next
          lease.ids.subtract(ids)
          @leases.delete(key) if lease.ids.empty?
        end
      end
    end

    # @return [Integer] how many messages are kept
    def size
      @lock.synchronize { @leases.values.sum { |lease| lease.ids.size } }
    end

    def close
      thread = @lock.synchronize do
        @closed = true
        @leases.clear
        @changed.signal
        @thread
      end
      thread&.join
    end

    private

    def third_of(visibility)
      (visibility / TIMES).clamp(SHORTEST, Clock::YEAR)
    end

    def run
      Thread.current.name = 'fila leases'
      while (due = wait)
        # Not inside the lock: what fails is forgotten at once.
        due.each { |settlement| extend(settlement) }
      end
    end

    # Waits for the next lease. Returns what is due now; nil: closed.
    def wait
      @lock.synchronize do
        return nil if @closed

        first = @leases.values.map(&:due).min
        @changed.wait(@lock, first && [first - Clock.now, 0.001].max)
        @closed ? nil : take_due(Clock.now)
      end
    end

    def take_due(now)
      @leases.select { |_, lease| lease.due <= now }.map do |(queue, lease_id), lease|
        lease.due = now + lease.every
        Settlement.new(action: :extend, queue: queue, lease_id: lease_id, message_ids: lease.ids.to_a, error: '',
                       delay_ms: 0)
      end
    end

    def extend(settlement)
      @settler.post(settlement) do |failures|
        gone = settlement.message_ids.select do |id|
          failures[[settlement.queue, id]].is_a?(MessageNotFoundError)
        end
        forget(settlement.queue, settlement.lease_id, gone) unless gone.empty?
      end
    rescue ThreadError
      # The system gives no thread for the stream now. The lease is extended with its next third.
    end
  end
end
