# frozen_string_literal: true

require 'set'

module Fila
  # Merges settlements into requests, and splits the answers.
  #
  # An answer names only failures, by queue and message id. So no request holds the same message twice: the second
  # settlement of a message waits for the next request.
  # @api private
  class SettleCodec
    MAX_MESSAGES = 1000
    NACKS = { nack: {}, release: { release: true }, reject: { dead_letter: true } }.freeze

    def initialize
      @sequence = 0
    end

    # A settlement names its lease, so it may be sent again for ever.
    def repeatable
      Float::INFINITY
    end

    def make_batch(gathered, _address)
      settles = take(gathered)
      return nil if settles.empty?

      @sequence += 1
      Batch.new(V1::SettleRequest.encode(request(settles)), settles, @sequence, false)
    end

    def answer(batch, response)
      return batch.fail(ErrorMapping.from_proto(response.error)) if response.error

      failures = response.failures.to_h do |failure|
        [[failure.queue, failure.message_id], ErrorMapping.from_proto(failure.error)]
      end
      batch.waiters.each { |settle| settle.answer(own(settle, failures, batch.resent)) }
    end

    private

    def take(gathered)
      settles = []
      seen = Set.new
      while (settle = gathered.first)
        if settle.waits?
          full = seen.size + settle.targets.size > MAX_MESSAGES || settle.targets.any? { |key| seen.include?(key) }
          break if full && !settles.empty?

          seen.merge(settle.targets)
          settles << settle
        end
        gathered.shift
      end
      settles
    end

    def request(settles)
      all = settles.flat_map(&:settlements).group_by(&:action)
      V1::SettleRequest.new(
        sequence: @sequence, acks: acks(all.fetch(:ack, [])), extends: extends(all.fetch(:extend, [])),
        nacks: NACKS.flat_map { |action, flags| nacks(all.fetch(action, []), flags) }
      )
    end

    def acks(settlements)
      settlements.group_by { |one| [one.queue, one.lease_id] }.map do |(queue, lease_id), group|
        V1::AckGroup.new(queue: queue, lease_id: lease_id, message_ids: group.flat_map(&:message_ids))
      end
    end

    def nacks(settlements, flags)
      settlements.flat_map do |one|
        one.message_ids.map do |id|
          V1::NackRequest.new(queue: one.queue, message_id: id, lease_id: one.lease_id, error: one.error,
                              delay_ms: one.delay_ms, **flags)
        end
      end
    end

    def extends(settlements)
      settlements.map do |one|
        V1::ExtendGroup.new(queue: one.queue, lease_id: one.lease_id, message_ids: one.message_ids,
                            extend_ms: one.delay_ms)
      end
    end

    # An ack that is sent again and refused because the message is gone was carried out.
    def own(settle, failures, resent)
      return {} if failures.empty?

      settle.settlements.each_with_object({}) do |one, found|
        one.targets.each do |key|
          error = failures[key] or next
          found[key] = error unless resent && one.action == :ack && error.kind == :MESSAGE_GONE
        end
      end
    end
  end
end
