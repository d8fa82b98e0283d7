# frozen_string_literal: true

module Fila
  # Calls of operators: queues, runtime configuration, throttles, dead letters. Part of {Client}.
  #
  # Answers with many figures are the messages of the contract, module {V1}.
  module Admin
    # @param settings [Hash] fields of QueueConfig, such as `visibility_timeout_ms: 30_000`
    # @return [String] the id of the queue
    # @raise [QueueAlreadyExistsError]
    def create_queue(queue:, timeout: nil, **settings)
      request = made(V1::CreateQueueRequest, name: queue, config: queue_config(settings))
      admin(:create_queue, request, timeout, again: false).queue_id
    end

    # Create a queue unless it exists. One that exists keeps its settings.
    # @return [Boolean] whether it was created
    def ensure_queue(queue:, timeout: nil, **settings)
      create_queue(queue: queue, timeout: timeout, **settings)
      true
    rescue QueueAlreadyExistsError
      false
    end

    # Change settings of a queue.
    # @return [V1::QueueConfig] all settings after the change
    def update_queue(queue:, timeout: nil, **settings)
      admin(:update_queue, made(V1::UpdateQueueRequest, queue: queue, config: queue_config(settings)), timeout).config
    end

    # Delete a queue, its dead-letter queue and all their messages.
    # @param force [Boolean] also when the dead-letter queue holds messages
    # @return [Integer] how many messages were deleted
    # @raise [QueueNotFoundError]
    def delete_queue(queue:, force: false, timeout: nil)
      request = made(V1::DeleteQueueRequest, queue: queue, force: force)
      admin(:delete_queue, request, timeout, again: false).messages_deleted
    end

    # @return [Array<V1::QueueSummary>] all queues, by name
    def list_queues(timeout: nil)
      found = []
      pages(:list_queues, V1::ListQueuesRequest.new, timeout) { |page| found.concat(page.queues.to_a) }
      found
    end

    # @return [V1::GetStatsResponse]
    # @raise [QueueNotFoundError]
    def stats(queue:, max_keys: 0, timeout: nil)
      admin(:get_stats, made(V1::GetStatsRequest, queue: queue, max_keys: max_keys), timeout)
    end

    # Stop delivery from a queue, also over restarts.
    def pause_queue(queue:, timeout: nil)
      admin(:pause_queue, made(V1::PauseQueueRequest, queue: queue), timeout)
      nil
    end

    # Deliver again from a queue that was paused.
    def resume_queue(queue:, timeout: nil)
      admin(:resume_queue, made(V1::ResumeQueueRequest, queue: queue), timeout)
      nil
    end

    # Set an entry of the runtime configuration.
    def set_config(key:, value:, timeout: nil)
      admin(:set_config, made(V1::SetConfigRequest, key: key, value: value), timeout)
      nil
    end

    # @return [String]
    # @raise [ConfigNotFoundError]
    def get_config(key:, timeout: nil)
      admin(:get_config, made(V1::GetConfigRequest, key: key), timeout).value
    end

    # @return [Hash{String => String}] the entries whose keys begin with the prefix
    def list_config(prefix: '', timeout: nil)
      found = {}
      pages(:list_config, made(V1::ListConfigRequest, prefix: prefix), timeout) do |page|
        page.entries.each { |entry| found[entry.key] = entry.value }
      end
      found
    end

    # @return [Boolean] whether the entry existed
    def delete_config(key:, timeout: nil)
      admin(:delete_config, made(V1::DeleteConfigRequest, key: key), timeout).existed
    end

    # Limit how fast messages with a throttle key are delivered, and how many are held at once.
    # @param key [String] such as "provider:aws"
    def set_throttle(key:, rate: nil, burst: nil, max_in_flight: nil, timeout: nil)
      parts = { rate: rate, burst: burst, max_in_flight: max_in_flight }.compact
      raise InvalidArgumentError, 'a throttle needs a rate or max_in_flight' if parts.empty?

      set_config(key: "throttle.#{key}", value: parts.map { |name, value| "#{name}=#{value}" }.join(','),
                 timeout: timeout)
    end

    # @return [Boolean] whether there was a limit
    def remove_throttle(key:, timeout: nil)
      delete_config(key: "throttle.#{key}", timeout: timeout)
    end

    # Look at messages without consuming them, oldest first.
    # @param filter [Hash] fields of MessageFilter
    # @return [Array<V1::PeekedMessage>]
    def peek(queue:, count: 100, payload_bytes: 0, filter: {}, timeout: nil)
      checked(count)
      found = []
      request = made(V1::PeekRequest, queue: queue, filter: chosen(filter),
                                      payload_bytes: payload_bytes, limit: [count, PAGE].min)
      pages(:peek, request, timeout) do |page|
        found.concat(page.messages.to_a)
        request.limit = [count - found.size, PAGE].min
        break if found.size >= count
      end
      found
    end

    # Move dead letters back to the queue that they came from, oldest first, in steps that have the timeout each.
    # @param dlq [String] the dead-letter queue
    # @param count [Integer, nil] at most so many; nil means all
    # @return [Integer] how many
    def redrive(dlq:, count: nil, dry_run: false, filter: {}, timeout: nil)
      request = made(V1::RedriveRequest, dlq_queue: dlq, filter: chosen(filter), dry_run: dry_run,
                                         bounded: true)
      sweep(:redrive, request, count, timeout, &:redriven)
    end

    # Remove messages for good, oldest first, in steps that have the timeout each.
    # @param any_queue [Boolean] also of a queue that is no dead-letter queue
    # @return [Integer] how many
    def purge(queue:, count: nil, any_queue: false, dry_run: false, filter: {}, timeout: nil)
      request = made(V1::PurgeRequest, queue: queue, filter: chosen(filter), dry_run: dry_run,
                                       any_queue: any_queue, bounded: true)
      sweep(:purge, request, count, timeout, &:purged)
    end

    # Why a message is still waiting: the given one, the first one of a fairness key, or the next one of all.
    # @return [V1::ExplainResponse]
    # @raise [MessageNotFoundError]
    def explain(queue:, msg_id: nil, fairness_key: nil, timeout: nil)
      subject = { message_id: msg_id, fairness_key: fairness_key }.compact
      admin(:explain, made(V1::ExplainRequest, queue: queue, **subject), timeout)
    end

    private

    # Messages of one step. The broker also ends a step by itself when it takes long.
    STEP = 10_000
    # Messages of one page.
    PAGE = 1000
    private_constant :STEP, :PAGE

    def admin(method, request, timeout, again: true)
      unary(V1::FilaAdmin, method, request, deadline(timeout), again: again)
    end

    # Yields each page. All of them have the time of one call.
    def pages(method, request, timeout)
      ends = deadline(timeout)
      loop do
        page = unary(V1::FilaAdmin, method, request, ends)
        yield page
        break if page.cursor.empty?

        request.cursor = page.cursor
      end
    end

    # An answer that was lost would be lost from the count too, so no step is sent again.
    def sweep(method, request, count, timeout)
      checked(count) if count
      done = 0
      loop do
        request.count = [STEP, count ? count - done : STEP].min
        request.final = !count.nil? && request.count == count - done
        page = admin(method, request, timeout, again: false)
        done += yield page
        return done if page.cursor.empty? || done == count

        request.cursor = page.cursor
      end
    end

    def checked(count)
      raise InvalidArgumentError, 'count must be at least 1' unless count.is_a?(Integer) && count >= 1
    end

    def chosen(filter)
      raise InvalidArgumentError, 'a filter is a Hash' unless filter.is_a?(Hash)

      made(V1::MessageFilter, **filter)
    end

    def queue_config(settings)
      settings = settings.compact
      headers = settings.delete(:throttle_headers)
      headers = headers[:names] || headers['names'] if headers.is_a?(Hash)
      settings[:throttle_headers] = made(V1::HeaderNames, names: headers) if headers
      made(V1::QueueConfig, **settings)
    end

    def made(type, **fields)
      fields.each do |name, value|
        raise InvalidArgumentError, "#{name} is missing" if value.nil?

        Text.check_all(value)
      end
      type.new(**fields)
    rescue TypeError, ArgumentError, RangeError, EncodingError => e
      raise InvalidArgumentError, e.message
    end
  end
end
