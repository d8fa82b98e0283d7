# frozen_string_literal: true

require 'securerandom'

module Fila
  # One caller's encoded messages. The answer is an Array of {EnqueueResult}.
  # @api private
  class Enqueue < Waiter
    attr_reader :frames, :deduped

    # @param frames [Array<String>] see {OutgoingMessage#encode}
    # @param deduped [Array<Boolean>] which of them have a dedup_key
    def initialize(frames, deduped, deadline, &on_finish)
      super(deadline, &on_finish)
      @frames = frames
      @deduped = deduped
    end

    def bytes
      @bytes ||= @frames.sum(&:bytesize)
    end
  end

  # Numbers and encodes the batches of a producer, and splits the answers.
  #
  # Each member of a cluster counts by itself, so the producer has an id for each. A batch keeps the id and the number
  # under which it was made, wherever it is sent again.
  # @api private
  class EnqueueCodec
    MAX_MESSAGES = 1000
    MAX_BYTES = 1 << 20
    # So many members are known at most. Who comes back after that is a member with a new id.
    MOST_MEMBERS = 64
    # For so many seconds after it was first sent, a batch may be sent again: less than the ten minutes for which the
    # broker remembers a producer that is silent.
    REPEATABLE = 540.0

    # @param producer_id [String, nil] nil: a random one, made with the first batch, and so never before a fork
    def initialize(producer_id = nil)
      @producer_id = producer_id
      @members = {}
      @named = 0
    end

    def repeatable
      REPEATABLE
    end

    # Takes from the left what fits into one batch.
    def make_batch(gathered, address)
      enqueues = take(gathered)
      return nil if enqueues.empty?

      member, sequence = number(address)
      head = V1::EnqueueBatchRequest.encode(V1::EnqueueBatchRequest.new(producer_id: member, sequence: sequence))
      data = enqueues.flat_map(&:frames).push(head).join
      Batch.new(data, enqueues, sequence, false)
    end

    def answer(batch, response)
      return batch.fail(ErrorMapping.from_proto(response.error)) if response.error

      results = response.results.to_a
      expected = batch.waiters.sum { |enqueue| enqueue.frames.size }
      if results.size != expected
        return batch.fail(InternalError.new("#{results.size} results for #{expected} messages"))
      end

      batch.waiters.each do |enqueue|
        mine = results.shift(enqueue.frames.size)
        enqueue.answer(mine.zip(enqueue.deduped).map { |result, deduped| made(result, deduped || !batch.resent) })
      end
    end

    private

    # @return [Array(String, Integer)] the id that the next batch for a member has, and its number
    def number(address)
      member, last = @members.delete(address) || [named, 0]
      @members.shift if @members.size >= MOST_MEMBERS
      @members[address] = [member, last + 1]
    end

    def named
      @producer_id ||= SecureRandom.hex(16)
      "#{@producer_id}-#{(@named += 1) - 1}"
    end

    def take(gathered)
      enqueues = []
      count = bytes = 0
      while (enqueue = gathered.first)
        if enqueue.waits?
          count += enqueue.frames.size
          bytes += enqueue.bytes
          break if !enqueues.empty? && (count > MAX_MESSAGES || bytes > MAX_BYTES)

          enqueues << enqueue
        end
        gathered.shift
      end
      enqueues
    end

    # A batch that was sent again is answered as a duplicate of itself, which is nothing to tell.
    def made(result, tell)
      return EnqueueResult.new(nil, false, ErrorMapping.from_proto(result.error)) if result.error

      EnqueueResult.new(result.message_id, result.duplicate && tell, nil)
    end
  end
end
