# frozen_string_literal: true

module Fila
  # Enqueues messages: concurrent calls travel together, in numbered batches on one stream.
  # @api private
  class Producer
    # Messages that wait for their answer may have this many bytes. Beyond, callers wait.
    MAX_BUFFERED = 16 << 20

    def initialize(connection, calls, max_buffered: MAX_BUFFERED)
      @connection = connection
      @calls = calls
      @stream = BatchStream.new(connection, 'EnqueueStream', V1::EnqueueBatchResponse, EnqueueCodec.new)
      @lock = Mutex.new
      @room = ConditionVariable.new
      @buffered = 0
      @max_buffered = max_buffered
    end

    # @return [EnqueueResult]
    # @raise [Error]
    def enqueue(queue, message, deadline)
      frames = [message.encode(queue)]
      deduped = [!message.dedup_key.nil?]
      @calls.retrying(deadline) do
        result = collect(submit(frames, deduped, deadline)).first
        raise result.error if result.error

        result
      end
    end

    # @return [Array<EnqueueResult>] one for each message, with what it met
    # @raise [Error] a wrong argument, or the client is closed
    def enqueue_many(queue, messages, deadline)
      @connection.check
      frames = messages.map { |message| message.encode(queue) }
      deduped = messages.map { |message| !message.dedup_key.nil? }
      results = Array.new(frames.size)
      send_all(frames, deduped, deadline, results)
      results
    end

    def close
      @stream.close
      @lock.synchronize { @room.broadcast }
    end

    private

    # Sends what has no result yet, and again what was refused for now.
    def send_all(frames, deduped, deadline, results)
      open = frames.each_index.to_a
      @calls.retrying(deadline) do
        round(open, frames, deduped, deadline, results)
        open = open.select { |index| results[index].error&.retryable? }
        raise results[open.first].error unless open.empty?
      end
    rescue Error => e
      # The time is over: the results tell it.
      raise unless e.retryable?
    end

    def round(indexes, frames, deduped, deadline, results)
      sent = []
      chunks(indexes, frames).each do |chunk|
        sent << [chunk, attempt(frames.values_at(*chunk), deduped.values_at(*chunk), deadline)]
      end
      sent.each do |chunk, enqueue|
        chunk.zip(outcomes(enqueue, chunk.size)) { |index, result| results[index] = result }
      end
    ensure
      # Whoever is interrupted gives up the rest.
      sent.each { |_, enqueue| enqueue.abandon if enqueue.is_a?(Enqueue) }
    end

    # @return [Enqueue, Error]
    def attempt(...)
      submit(...)
    rescue Error => e
      e
    end

    def outcomes(enqueue, size)
      raise enqueue if enqueue.is_a?(Error)

      collect(enqueue)
    rescue Error => e
      Array.new(size) { EnqueueResult.new(nil, false, e) }
    end

    # Messages of one caller are split into halves of a batch, so that batches can be filled.
    def chunks(indexes, frames)
      bytes = count = 0
      indexes.slice_when do |index, following|
        bytes += frames[index].bytesize
        count += 1
        full = bytes + frames[following].bytesize > EnqueueCodec::MAX_BYTES / 2 ||
               count >= EnqueueCodec::MAX_MESSAGES / 2
        bytes = count = 0 if full
        full
      end
    end

    def submit(frames, deduped, deadline)
      enqueue = Enqueue.new(frames, deduped, deadline) { give_room(enqueue.bytes) }
      take_room(enqueue.bytes, deadline)
      begin
        @stream.submit(enqueue)
        submitted = true
      ensure
        enqueue.abandon unless submitted
      end
      enqueue
    end

    def collect(enqueue)
      enqueue.result { @stream.too_late(enqueue) }
    end

    # One message always has room, however large it is.
    def take_room(bytes, deadline)
      @lock.synchronize do
        until @buffered.zero? || @buffered + bytes <= @max_buffered
          @connection.check
          left = deadline - Clock.now
          raise TimeoutError, 'too much waits to be sent' if left <= 0

          @room.wait(@lock, left)
        end
        @buffered += bytes
      end
    end

    def give_room(bytes)
      @lock.synchronize do
        @buffered -= bytes
        @room.broadcast
      end
    end
  end
end
