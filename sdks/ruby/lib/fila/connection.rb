# frozen_string_literal: true

module Fila
  # The channels to the members of a cluster, of which one is current. Makes calls, and knows how to end them all.
  # @api private
  class Connection
    CHANNEL_ARGS = {
      # A connection of its own, which ends with the client.
      'grpc.use_local_subchannel_pool' => 1,
      'grpc.keepalive_time_ms' => 30_000,
      'grpc.keepalive_timeout_ms' => 10_000,
      'grpc.keepalive_permit_without_calls' => 1,
      'grpc.http2.max_pings_without_data' => 0,
      'grpc.initial_reconnect_backoff_ms' => 20,
      'grpc.max_reconnect_backoff_ms' => 500,
      # How long one attempt to connect may take.
      'grpc.min_reconnect_backoff_ms' => 2_000,
      'grpc.max_receive_message_length' => 64 << 20,
      'grpc.service_config_disable_resolution' => 1,
      'grpc.primary_user_agent' => "fila-ruby/#{VERSION}"
    }.freeze
    SERVICE = '/fila.v1.FilaService/'
    # Streams have no deadline of their own: the callers that wait have.
    FOREVER = GRPC::Core::TimeConsts::INFINITE_FUTURE
    AS_IT_IS = ->(bytes) { bytes }

    # Open to so many members at most. Who was not called for the longest is let go, and connected again when needed.
    MOST_CHANNELS = 64
    # How often at most a client moves because its calls were passed on.
    MOVE_EVERY = 1.0

    attr_reader :addresses

    def initialize(addresses, api_key, tls)
      @addresses = addresses
      @api_key = api_key
      @pems = tls&.pems
      @args = CHANNEL_ARGS.merge(tls ? tls.channel_args : {})
      @lock = Mutex.new
      @channels = {}
      @refused = false
      @moved_at = Clock.now - MOVE_EVERY
    end

    # @return [String] the address that calls go to
    def address
      @addresses.current
    end

    # From the first use on, the client belongs to this process.
    # @raise [ClosedError]
    def check
      raise ClosedError, 'the client was used before the fork: it belongs to the parent process' if forked?
      raise ClosedError, 'the client is closed' if @refused

      @pid = Process.pid
    end

    # Whether this is a child of the process that the client belongs to.
    def forked?
      !@pid.nil? && Process.pid != @pid
    end

    def metadata
      @api_key.metadata
    end

    # A bidirectional stream of encoded requests. `execute` of what it returns reads until the end.
    # @param requests [#each] yields encoded requests; its end half-closes the stream
    def stream(name, requests, response, address: self.address, &block)
      make(V1::FilaService, address) do |stub|
        stub.bidi_streamer(SERVICE + name, requests, AS_IT_IS, response.method(:decode),
                           deadline: FOREVER, return_op: true, metadata: metadata, &block)
      end
    end

    # Make a call. The channel cannot be closed before the block has made it.
    # @yieldparam stub of the service
    # @return what the block returns
    def make(service, address)
      @lock.synchronize { yield service::Stub.new(address, nil, channel_override: channel(address)) }
    end

    # Wait until the connection stands.
    # @return [Boolean] false: it could not be made, or not up to the deadline (by {Clock})
    def ready?(address, deadline)
      states = GRPC::Core::ConnectivityStates
      began = Clock.now
      until (state = state_of(address)) == states::READY
        # A failure of the past does not count: the channel was just asked to try again.
        failed = state == states::TRANSIENT_FAILURE && Clock.now - began > 0.05
        return false if failed || Clock.now >= deadline

        # Polling can be interrupted at any time, which watching a state of gRPC cannot.
        sleep 0.005
      end
      true
    end

    # Follow a refusal to where it points.
    # @return [Boolean] whether that is another place
    def follow(error, from)
      case error.kind
      when :NOT_OWNER then @addresses.follow(error.owner)
      when :SHUTTING_DOWN then @addresses.leave(from)
      end
      address != from
    end

    # A member has answered, but has asked the one that it names: the next calls go there. It is a hint, followed now
    # and then only, so that a client whose queues have several owners does not move with each call.
    # @param trailers [Hash] of the call
    def passed_on(trailers)
      owner = ErrorMapping.owner_in(trailers)
      return if owner.empty? || owner == address

      @lock.synchronize do
        return if Clock.now - @moved_at < MOVE_EVERY

        @moved_at = Clock.now
      end
      @addresses.follow(owner)
    end

    # From now on no call is made.
    def refuse
      @refused = true
    end

    def close
      @lock.synchronize do
        @channels.each_value(&:close)
        @channels.clear
      end
    end

    # Keys must not show up in logs.
    def inspect
      "#<#{self.class} #{address}>"
    end

    private

    # The state is asked for with the lock held: gRPC cannot be asked about a channel that is being closed.
    def state_of(address)
      @lock.synchronize { channel(address).connectivity_state(true) }
    end

    # One that is let go ends when the last of its calls has ended.
    def channel(address)
      check
      found = @channels.delete(address) || connect(address)
      @channels.shift if @channels.size >= MOST_CHANNELS
      @channels[address] = found
    end

    def connect(address)
      GRPC::Core::Channel.new(address, @args, credentials)
    rescue RuntimeError => e
      raise ClosedError, "this process was forked after its parent had used gRPC: #{e.message}"
    end

    def credentials
      @pems ? (@credentials ||= GRPC::Core::ChannelCredentials.new(*@pems)) : :this_channel_is_insecure
    end
  end
end
