# frozen_string_literal: true

module Fila
  # A message as a consumer receives it. Settle it with {#ack}, {#nack}, {#release} or {#reject}.
  class ConsumeMessage
    # @return [String] assigned by the broker; ids increase in the order of enqueueing
    attr_reader :id
    # @return [Hash{String => String}]
    attr_reader :headers
    # @return [String] the bytes that the producer sent: binary, and frozen
    attr_reader :payload
    # @return [String] under which it was scheduled
    attr_reader :fairness_key
    # @return [Integer] how many attempts failed before this delivery
    attr_reader :attempt_count
    # @return [String] the queue that holds it
    attr_reader :queue
    # @return [String] the lease under which it was delivered; empty for a message that was only looked at
    attr_reader :lease_id
    # @return [Integer] 0 is the most urgent
    attr_reader :priority
    # @return [Integer] the weight of its fairness key
    attr_reader :weight
    # @return [Array<String>]
    attr_reader :throttle_keys
    # @return [Time, nil]
    attr_reader :enqueued_at

    # @api private
    def initialize(message, queue, client)
      @client = client
      @queue = queue
      @id = message.id
      @headers = message.headers.to_h
      @payload = message.payload
      stamp = message.timestamps&.enqueued_at
      @enqueued_at = stamp && Time.at(stamp.seconds, stamp.nanos, :nsec)
      take(message.metadata || V1::MessageMetadata.new)
    end

    # Whether it is delivered alone, because a consumer died that held it.
    def isolated?
      @isolated
    end

    # Remove the message for good.
    # @raise [MessageNotFoundError] its lease has ended
    def ack(**options)
      @client.ack(queue: queue, msg_id: id, lease_id: lease_id, **options)
    end

    # Return the message as failed. It is delivered again after `delay_ms`.
    def nack(error: '', delay_ms: 0, **options)
      @client.nack(queue: queue, msg_id: id, error: error, delay_ms: delay_ms, lease_id: lease_id, **options)
    end

    # Return the message. Nothing failed: no attempt is counted.
    def release(delay_ms: 0, **options)
      @client.release(queue: queue, msg_id: id, delay_ms: delay_ms, lease_id: lease_id, **options)
    end

    # Move the message to the dead-letter queue.
    def reject(error: '', **options)
      @client.reject(queue: queue, msg_id: id, error: error, lease_id: lease_id, **options)
    end

    # Let the lease end `extend_ms` from now; 0 means the visibility timeout of the queue.
    def extend_lease(extend_ms: 0, **options)
      @client.extend_lease(queue: queue, msg_id: id, extend_ms: extend_ms, lease_id: lease_id, **options)
    end

    # Run the block inside a span that continues the trace of the producer, in a program that uses OpenTelemetry.
    def span(&block)
      Tracing.process(self, &block)
    end

    # Without headers and payload, which must not show up in logs.
    def inspect
      "#<#{self.class} id=#{id} queue=#{queue} attempt_count=#{attempt_count}>"
    end

    private

    def take(metadata)
      @fairness_key = metadata.fairness_key
      @attempt_count = metadata.attempt_count
      @lease_id = metadata.lease_id
      @priority = metadata.priority
      @weight = metadata.weight
      @throttle_keys = metadata.throttle_keys.to_a
      @isolated = metadata.isolation != :ISOLATION_UNSPECIFIED
    end
  end
end
