# frozen_string_literal: true

module Fila
  # What a {Consumer} takes messages from: a thread that reads one Consume stream after another, and what it has
  # prefetched.
  # @api private
  class Feed
    # The initial metadata by which the broker says how long leases last.
    VISIBILITY = 'fila-visibility-timeout-ms'
    # How long the broker may take to end a stream that was half-closed.
    GOODBYE = 5.0

    attr_reader :queue

    def initialize(client, connection, settler, keeper, queue:, max_in_flight:, auto_extend:)
      @client = client
      @connection = connection
      @settler = settler
      @queue = Text.check(queue)
      @credit = ConsumeStream.checked(max_in_flight)
      @prefetch = Prefetch.new(keeper, @queue, auto_extend)
      @comeback = Comeback.new(connection)
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @thread = Thread.new { run }
    end

    # @return [ConsumeMessage, nil]
    def pop(timeout)
      deadline = timeout && Clock.deadline(timeout)
      taken = nil
      # An interrupt comes while there is nothing to lose, or at the end of this block.
      Thread.handle_interrupt(Object => :on_blocking) { taken = take(deadline) }
      handed = true
      taken&.message
    ensure
      @lock.synchronize { put_back(taken) } if taken && !handed
    end

    def credit=(credit)
      ConsumeStream.checked(credit)
      @lock.synchronize do
        @credit = credit
        @stream.credit = credit if @stream
      end
    end

    def waiting
      @lock.synchronize { @prefetch.size }
    end

    # Nobody will settle this message. A lease that was extended for ever would hide it from all consumers.
    def forsake(message)
      @prefetch.forget([message])
    end

    # Half-close, without waiting for the end.
    def begin_stop
      @lock.synchronize do
        let_go
        @prefetch.clear
      end
    end

    # Like {#begin_stop}, without the lock: the garbage collector may call it wherever a thread is. The thread of the
    # feed does the rest.
    def let_go
      @stopping = true
      @stream&.stopping = true
      @changed.broadcast
    end

    def stop
      begin_stop
      finish_stop(Clock.now + GOODBYE)
    end

    # @param deadline [Float] until when the broker may take to end the stream
    def finish_stop(deadline)
      return if @connection.forked? || @thread.join([deadline - Clock.now, 0].max)

      @lock.synchronize do
        @cut = true
        @stream&.operation&.cancel
      end
      @thread.join
    end

    def stopped?
      @stopping || !@error.nil?
    end

    # @return [Boolean] whether it has a thread
    def alive?
      @thread.alive?
    end

    private

    # @return [Prefetch::Delivery, nil]
    def take(deadline)
      @connection.check unless @stopping
      @lock.synchronize do
        loop do
          delivery = @prefetch.shift
          return delivery if delivery && handed?(delivery, deadline)
          return nil if over?(deadline)

          @changed.wait(@lock, deadline && [deadline - Clock.now, 0].max) if @prefetch.empty?
        end
      end
    end

    # Whether there will be no message, or not in time.
    def over?(deadline)
      return true if @stopping
      raise @error.dup if @error

      !deadline.nil? && Clock.now >= deadline
    end

    # Counts a message as handed. One that comes alone is reported before the application has it: if the process dies of
    # it, the broker knows.
    def handed?(delivery, deadline)
      isolated = delivery.message.isolated?
      delivery.number ||= delivery.stream.hand(urgent: isolated)
      !isolated || reported?(delivery, deadline)
    end

    def reported?(delivery, deadline)
      stream = delivery.stream
      until (reported = stream.written >= delivery.number) || stream.over
        left = deadline ? deadline - Clock.now : ConsumeStream::LOOK_EVERY
        break if left <= 0

        @changed.wait(@lock, [left, ConsumeStream::LOOK_EVERY].min)
      end
      reported
    ensure
      put_back(delivery) unless reported
    end

    # What the application was not handed after all is the next one again. If its stream is over, its lease has ended.
    def put_back(delivery)
      return forsake(delivery.message) if @stopping || delivery.stream.over

      @prefetch.put_back(delivery)
      @changed.broadcast
    end

    def run
      Thread.current.name = 'fila consumer'
      until @stopping || @error
        failure = use_one
        wait(@lock.synchronize { after(failure) })
      end
    rescue ClosedError => e
      give_up(ClosedError.new(e.message))
    rescue StandardError => e
      give_up(InternalError.new("the consumer of #{queue} failed: #{e.message}"))
    end

    # Uses one stream, from opening it to its end. Returns how it ended.
    def use_one
      @address = @connection.address
      stream = begin_stream
      operation = @connection.stream('Consume', stream, V1::ConsumeResponse, address: @address) do |response|
        deliver(stream, response)
      end
      @lock.synchronize do
        stream.operation = operation
        operation.cancel if @cut
      end
      operation.execute
      nil
    rescue GRPC::BadStatus => e
      e
    rescue GRPC::Core::CallError => e
      GRPC::Unavailable.new(e.message)
    ensure
      finish(stream) if stream
    end

    def begin_stream
      @lock.synchronize do
        @stream = ConsumeStream.new(@lock, @changed, queue, @credit)
        @stream.stopping = @stopping
        @stream
      end
    end

    def finish(stream)
      lost = @lock.synchronize do
        stream.over = true
        @stream = nil
        @changed.broadcast
        @prefetch.clear
      end
      stream.operation&.cancel
      stream.writer&.join
      # The broker has taken them back, if it has noticed. Handing them out would mean a second delivery for nothing.
      release(lost) unless @stopping
    end

    def release(messages)
      @prefetch.each_lease(messages) do |lease_id, ids|
        @settler.post(Settlement.new(action: :release, queue: queue, lease_id: lease_id, message_ids: ids, error: '',
                                     delay_ms: 0))
      end
    end

    def deliver(stream, response)
      messages = response.messages.map { |message| ConsumeMessage.new(message, queue, @client) }
      @lock.synchronize do
        @comeback.answered
        @prefetch.visibility_ms = visibility_ms(stream, response)
        # After the half-close they are on their way back.
        return if stream.stopping

        @prefetch.add(messages, stream)
        @changed.broadcast
      end
    end

    # How long leases last: as the response says, else as the metadata of the stream does. 0: not told.
    def visibility_ms(stream, response)
      told = response.visibility_timeout_ms
      # It may have changed while there was no stream.
      told = [stream.operation.metadata&.[](VISIBILITY)].flatten.first.to_i if told.zero? && !stream.timed
      stream.timed = true
      told
    end

    # What to do after the end of a stream. Returns how long to wait.
    def after(failure)
      return 0.0 if @stopping
      return @comeback.next_wait if failure.nil?
      return @comeback.after_loss(@address) if ErrorMapping.lost?(failure)

      error = ErrorMapping.from_status(failure)
      @comeback.after_refusal(error, @address) || refuse(error)
    end

    def refuse(error)
      @error = error
      @changed.broadcast
      0.0
    end

    def wait(seconds)
      ends = Clock.now + seconds
      @lock.synchronize do
        while !@stopping && (left = ends - Clock.now).positive?
          @changed.wait(@lock, left)
        end
      end
    end

    def give_up(error)
      @lock.synchronize { refuse(error) }
    end
  end
end
