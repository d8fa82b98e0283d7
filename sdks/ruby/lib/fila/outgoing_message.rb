# frozen_string_literal: true

module Fila
  # A message to enqueue, for {Client#enqueue_many}.
  #
  # @!attribute payload
  #   @return [String] any bytes
  # @!attribute headers
  #   @return [Hash{String, Symbol => String}]
  # @!attribute delay_ms
  #   @return [Integer] the message is not delivered earlier
  # @!attribute priority
  #   @return [Integer, nil] 0 (most urgent) to 255, inside its fairness key
  # @!attribute dedup_key
  #   @return [String, nil] a second message with this key within the queue's window is not enqueued
  OutgoingMessage = Struct.new(:payload, :headers, :delay_ms, :priority, :dedup_key, keyword_init: true) do
    # @api private
    # @return [String] the message as a field of an encoded EnqueueBatchRequest; such fields can be put in a row
    def encode(queue)
      Text.check(queue)
      Text.check(dedup_key) if dedup_key
      headers = Tracing.inject(checked_headers)
      message = V1::EnqueueRequest.new(queue: queue, headers: headers, payload: bytes,
                                       delay_ms: delay_ms || 0, dedup_key: dedup_key || '')
      message.priority = priority if priority
      V1::EnqueueBatchRequest.encode(V1::EnqueueBatchRequest.new(messages: [message]))
    rescue TypeError, ArgumentError, RangeError, EncodingError => e
      raise InvalidArgumentError, e.message
    end

    private

    def checked_headers
      return {} if headers.nil?
      raise InvalidArgumentError, 'headers are a Hash' unless headers.is_a?(Hash)

      headers.transform_keys(&:to_s).each { |pair| pair.each { |text| Text.check(text) } }
    end

    def bytes
      return '' if payload.nil?
      raise InvalidArgumentError, 'a payload is a String' unless payload.is_a?(String)

      payload.b
    end
  end

  # What became of one message.
  EnqueueResult = Struct.new(:id, :duplicate, :error) do
    # Whether the message was enqueued, now or before.
    def ok?
      error.nil?
    end

    # Whether an earlier message had the same dedup_key: the id is that of the earlier one.
    def duplicate?
      duplicate
    end
  end
end
