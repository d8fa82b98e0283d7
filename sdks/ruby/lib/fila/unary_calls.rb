# frozen_string_literal: true

module Fila
  # Unary calls: with a deadline, to the next address when one is lost, again where that changes nothing twice.
  # @api private
  class UnaryCalls
    # How long one address may take to connect before the next one is tried.
    CONNECT = 2.0
    # With less time than this left, nothing is tried again: what was refused is known, and the answer to one more
    # attempt would come when nobody waits for it.
    ENOUGH = 0.25

    def initialize(connection)
      @connection = connection
      @lock = Mutex.new
      @open = {}
      @closed = false
    end

    # @param again [Boolean] whether the call may be sent again when its answer was lost
    # @raise [Error]
    def call(service, method, request, deadline:, again: true)
      retrying(deadline) do
        address = @connection.address
        connect(address, deadline)
        invoke(service, method, request, address, deadline)
      rescue GRPC::BadStatus => e
        error = ErrorMapping.from_status(e)
        raise ErrorMapping.lost?(e) ? lost(error, address, again) : error
      rescue GRPC::Core::CallError, Google::Protobuf::ParseError => e
        raise InternalError, "#{address}: #{e.message}"
      end
    end

    # Try again what may succeed later, up to the deadline. Where a refusal names another member, go there at once.
    #
    # Whoever interrupts the caller (Timeout, Thread#raise) does so while it waits, never between two steps that belong
    # together.
    def retrying(deadline, &block)
      Thread.handle_interrupt(Object => :on_blocking) { try_until(deadline, &block) }
    end

    # Cancel what is under way, and wait until it has ended.
    def close
      open = @lock.synchronize do
        @closed = true
        @open.dup
      end
      open.each_key(&:cancel)
      open.each_value(&:join)
    end

    private

    def try_until(deadline)
      backoff = Backoff.new
      hops = 0
      begin
        address = @connection.address
        yield
      rescue Error => e
        raise unless e.retryable?

        hops = hop?(e, address, hops) ? hops + 1 : 0
        wait = hops.positive? ? 0 : backoff.next_wait(at_least: e.retry_after)
        raise if Clock.now + wait + ENOUGH >= deadline

        sleep wait
        retry
      end
    end

    # Whether the next attempt goes to another member at once. After four in a row the cluster is given time.
    def hop?(error, address, hops)
      return false if hops >= Addresses::MAX_HOPS

      @connection.follow(error, address) && error.kind == :NOT_OWNER
    end

    def connect(address, deadline)
      @connection.check
      return if @connection.ready?(address, [deadline, Clock.now + CONNECT].min)

      @connection.addresses.leave(address)
      raise UnavailableError.new("#{address} cannot be reached", retryable: true)
    end

    # The call runs in a thread of its own: the caller may be interrupted (Timeout, Thread#raise), gRPC must not be.
    def invoke(service, method, request, address, deadline)
      metadata = @connection.metadata
      operation = @connection.make(service, address) do |stub|
        stub.public_send(method, request, deadline: Time.now + [deadline - Clock.now, 0].max, return_op: true,
                                          metadata: metadata)
      end
      waiter = Waiter.new(deadline + 1)
      thread = start(operation, waiter)
      answer = waiter.result { TimeoutError.new('no answer in time') }
      @connection.passed_on(operation.trailing_metadata || {})
      answer
    ensure
      operation&.cancel
      thread&.join
    end

    def start(operation, waiter)
      @lock.synchronize do
        raise ClosedError, 'the client is closed' if @closed

        @open[operation] = Thread.new do
          waiter.answer(operation.execute)
        rescue StandardError => e
          waiter.fail(e)
        ensure
          @lock.synchronize { @open.delete(operation) }
        end
      end
    end

    def lost(error, address, again)
      @connection.check
      @connection.addresses.leave(address)
      UnavailableError.new("#{address}: #{error.message}", retryable: again)
    end
  end
end
