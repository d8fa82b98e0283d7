# frozen_string_literal: true

module Fila
  # A connection to a Fila broker. Threads may share it: their concurrent calls travel together.
  #
  #   Fila::Client.open('localhost:5555') do |client|
  #     client.enqueue(queue: 'orders', headers: { 'tenant' => 'acme' }, payload: '...')
  #     client.consume(queue: 'orders') { |message| message.ack }
  #   end
  #
  # - Every method raises {Error}. `timeout` of a method is in seconds, and that of the client where it is left out.
  # - `Timeout.timeout` and `Thread#raise` end a call too. What it asked for may have been done.
  # - A client belongs to the process that uses it first. In a child of `fork` it raises {ClosedError}; see the README.
  class Client
    include Admin

    # The credit of a consumer, unless it says otherwise.
    MAX_IN_FLIGHT = 100

    # A client for the time of the block.
    # @return what the block returns
    def self.open(*args, **options)
      client = new(*args, **options)
      begin
        yield client
      ensure
        client.close
      end
    end

    # Does not wait for a connection.
    #
    # @param addresses [String, Array<String>] one, or several of one cluster: "a:5555,b:5555" or an Array
    # @param timeout [Numeric] how many seconds a call may take, reconnects included; `Float::INFINITY` is no limit
    # @param api_key [String, nil] the key; else that of the environment: FILA_API_KEY, FILA_API_KEY_FILE
    # @param api_key_file [String, nil] the file that holds it, read again when it changes
    # @param tls [TLS, Hash, Boolean, nil] true trusts the CAs of gRPC
    def initialize(addresses = 'localhost:5555', timeout: 5.0, api_key: nil, api_key_file: nil, tls: nil)
      Clock.deadline(timeout)
      @timeout = timeout
      @connection = Connection.new(Addresses.new(addresses), ApiKey.find(api_key, api_key_file), TLS.from(tls))
      @calls = UnaryCalls.new(@connection)
      @producer = Producer.new(@connection, @calls)
      @settler = Settler.new(@connection, @calls)
      @keeper = LeaseKeeper.new(@settler)
      @lock = Mutex.new
      @feeds = []
    end

    # Enqueue one message.
    # @param headers [Hash{String, Symbol => String}]
    # @param payload [String] any bytes
    # @param options as {#enqueue_result} takes them
    # @return [String] its id, once the message is durable
    # @raise [QueueNotFoundError]
    def enqueue(queue:, headers: {}, payload: '', timeout: nil, **options)
      enqueue_result(queue: queue, headers: headers, payload: payload, timeout: timeout, **options).id
    end

    # As {#enqueue}, and tells whether an earlier message had the same dedup_key.
    # @param delay_ms [Integer] the message is not delivered earlier
    # @param priority [Integer, nil] 0 (most urgent) to 255, inside its fairness key
    # @param dedup_key [String, nil] a second message with this key within the queue's window is not enqueued
    # @return [EnqueueResult]
    def enqueue_result(queue:, headers: {}, payload: '', delay_ms: 0, priority: nil, dedup_key: nil, timeout: nil)
      message = OutgoingMessage.new(payload: payload, headers: headers, delay_ms: delay_ms, priority: priority,
                                    dedup_key: dedup_key)
      @producer.enqueue(queue, message, deadline(timeout))
    end

    # Enqueue messages, in order.
    # @param messages [Enumerable<OutgoingMessage, Hash, String>] a String is a payload
    # @return [Array<EnqueueResult>] one for each, once all are durable
    # @raise [EnqueueManyError] the broker did not accept some; it has the results
    def enqueue_many(queue:, messages:, timeout: nil)
      raise InvalidArgumentError, 'messages are an Enumerable' unless messages.is_a?(Enumerable)

      outgoing = messages.each_entry.map { |message| outgoing(message) }
      results = @producer.enqueue_many(queue, outgoing, deadline(timeout))
      raise EnqueueManyError, results unless results.all?(&:ok?)

      results
    end

    # Messages as they are delivered. With a block: hands them to it until the block breaks, then stops gracefully. A
    # message with which the block is left, by `break`, `throw` or an exception, is extended no more: unless it is
    # settled, it is delivered again when its lease ends.
    # @param max_in_flight [Integer] at most so many are prefetched or unsettled
    # @param auto_extend [Boolean] whether leases are extended while the client lives
    # @yieldparam message [ConsumeMessage]
    # @return [Consumer] without a block: an Enumerator; end it with {Consumer#stop}
    # @raise [QueueNotFoundError] as soon as a message is asked for
    def consume(queue:, max_in_flight: MAX_IN_FLIGHT, auto_extend: true, &block)
      feed = start_feed(queue, max_in_flight, auto_extend)
      return Consumer.new(feed) unless block

      begin
        while (message = feed.pop(nil))
          handle(feed, message, &block)
        end
      ensure
        feed.stop
      end
    end

    # Remove a delivered message for good.
    # @param lease_id [String] with it, an ack that comes after the lease ended is refused
    # @raise [MessageNotFoundError] nobody holds it
    def ack(queue:, msg_id:, lease_id: '', timeout: nil)
      settle(:ack, queue, msg_id, lease_id, timeout)
    end

    # Return a delivered message as failed. It is delivered again after `delay_ms`.
    # @param error [String] is kept with the message
    # @raise [MessageNotFoundError]
    def nack(queue:, msg_id:, error: '', delay_ms: 0, lease_id: '', timeout: nil)
      settle(:nack, queue, msg_id, lease_id, timeout, error: error, delay_ms: delay_ms)
    end

    # Return a delivered message without counting an attempt.
    # @raise [MessageNotFoundError]
    def release(queue:, msg_id:, delay_ms: 0, lease_id: '', timeout: nil)
      settle(:release, queue, msg_id, lease_id, timeout, delay_ms: delay_ms)
    end

    # Move a delivered message to the dead-letter queue.
    # @raise [MessageNotFoundError]
    def reject(queue:, msg_id:, error: '', lease_id: '', timeout: nil)
      settle(:reject, queue, msg_id, lease_id, timeout, error: error)
    end

    # Let a lease end `extend_ms` from now; 0 means the visibility timeout.
    # @raise [MessageNotFoundError]
    def extend_lease(queue:, msg_id:, extend_ms: 0, lease_id: '', timeout: nil)
      settle(:extend, queue, msg_id, lease_id, timeout, delay_ms: extend_ms)
    end

    # What the server is: version, features, limits.
    # @return [V1::DescribeResponse]
    def describe(timeout: nil)
      unary(V1::FilaService, :describe, V1::DescribeRequest.new, deadline(timeout))
    end

    # Stop consumers gracefully and end everything. Calls of other threads raise {ClosedError}.
    def close
      # What a child would close is used by its parent.
      return nil if @connection.forked?

      feeds = @lock.synchronize do
        @closing = true
        @feeds.dup
      end
      stop(feeds)
      @connection.refuse
      @keeper.close
      @producer.close
      @settler.close
      @calls.close
      @connection.close
      nil
    end

    # A key must not show up in logs.
    def inspect
      "#<#{self.class} #{@connection.address}>"
    end

    private

    # @param timeout [Numeric, nil] nil: that of the client
    def deadline(timeout)
      Clock.deadline(timeout.nil? ? @timeout : timeout)
    end

    def unary(service, method, request, deadline, again: true)
      @calls.call(service, method, request, deadline: deadline, again: again)
    end

    def settle(action, queue, msg_id, lease_id, timeout, error: '', delay_ms: 0)
      settlement = Settlement.new(action: action, queue: queue, lease_id: lease_id, message_ids: [msg_id],
                                  error: error, delay_ms: delay_ms).check
      ends = deadline(timeout)
      @keeper.forget(settlement.queue, settlement.lease_id, settlement.message_ids) unless action == :extend
      @settler.settle(settlement, ends)
      nil
    end

    def outgoing(message)
      case message
      when OutgoingMessage then message
      when String then OutgoingMessage.new(payload: message)
      when Hash then OutgoingMessage.new(**message)
      else raise InvalidArgumentError, "#{message.class} is no message"
      end
    rescue ArgumentError => e
      raise InvalidArgumentError, e.message
    end

    def handle(feed, message)
      yield message
      finished = true
    ensure
      feed.forsake(message) unless finished
    end

    def start_feed(queue, max_in_flight, auto_extend)
      @connection.check
      @lock.synchronize do
        raise ClosedError, 'the client is closed' if @closing

        @feeds.select!(&:alive?)
        feed = Feed.new(self, @connection, @settler, @keeper, queue: queue, max_in_flight: max_in_flight,
                                                              auto_extend: auto_extend)
        @feeds << feed
        feed
      end
    end

    # All at once: each may have to wait for the broker.
    def stop(feeds)
      feeds.each(&:begin_stop)
      deadline = Clock.now + Feed::GOODBYE
      feeds.each { |feed| feed.finish_stop(deadline) }
    end
  end
end
