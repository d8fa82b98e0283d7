# frozen_string_literal: true

module Fila
  # One bidirectional stream of batches: opens it when there is work, and again with backoff when it is lost.
  #
  # Two threads: ours reads answers, that of gRPC asks {Turn#each} for requests. Callers only wait. A batch is made of
  # the requests that wait when the wire has room: a single one leaves at once, and under load batches grow.
  # @api private
  class BatchStream
    # One stream, from opening it to its end.
    Turn = Struct.new(:owner, :address, :operation, :writer, :over) do
      # Called by the writing thread of gRPC. The end of the method half-closes the stream.
      def each
        self.writer = Thread.current
        while (batch = owner.next_batch(self))
          yield batch.data
        end
      end
    end

    # Ends a stream on which the broker has refused for a while what it may have carried out before.
    class PutOff < StandardError
      attr_reader :refusal

      def initialize(refusal)
        super(refusal.message)
        @refusal = refusal
      end
    end

    # How often a writer without work looks whether the broker has ended the stream: gRPC does not tell it.
    LOOK_EVERY = 1.0
    # From so many requests on, those that nobody waits for any more are removed.
    TIDY_FROM = 16
    FORGOTTEN = 'the answer was lost, and the broker may not know the request any more'

    def initialize(connection, rpc, response, codec)
      @connection = connection
      @rpc = rpc
      @response = response
      @codec = codec
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @gathered = []
      @tidy_at = TIDY_FROM
      @window = SendWindow.new
      @comeback = Comeback.new(connection)
      @trouble = nil
    end

    # Send a request. The waiter gets its answer, or an error that is not worth trying again.
    def submit(waiter)
      @connection.check
      @lock.synchronize do
        raise @ended.dup if @ended

        tidy
        @gathered << waiter
        @thread ||= Thread.new { run }
        @changed.broadcast
      end
    end

    # What a caller raises whose time is over.
    def too_late(waiter)
      trouble = @trouble
      return TimeoutError.new("no answer in time#{" (#{trouble})" if trouble}") if waiter.sent || !trouble

      UnavailableError.new("no connection in time: #{trouble}", retryable: true)
    end

    # End the stream. Whoever waits gets a ClosedError.
    def close
      give_up(ClosedError.new('the client is closed'))
      thread = @lock.synchronize do
        @changed.broadcast
        @turn&.operation&.cancel
        @thread
      end
      thread&.join
    end

    # The next batch for the wire; nil: the stream is to end. Called by {Turn}.
    def next_batch(turn)
      @lock.synchronize do
        until turn.over || @ended || turn.operation.status
          # Somebody followed the cluster to another member: end this stream in peace when all is answered.
          moved = @connection.address != turn.address
          return nil if moved && !@window.in_flight?

          batch = next_in_time(turn) unless moved
          if batch
            batch.waiters.each { |waiter| waiter.sent = true }
            return batch
          end
          @changed.wait(@lock, LOOK_EVERY)
        end
      end
    end

    private

    # What the broker may not know any more is not sent again: it could be carried out twice.
    def next_in_time(turn)
      now = Clock.now
      @window.older(now - @codec.repeatable).each do |batch|
        batch.fail(FailedPreconditionError.new(FORGOTTEN, kind: :STALE_SEQUENCE))
      end
      @window.next(now) { @codec.make_batch(@gathered, turn.address) }
    end

    # While the wire stands still, what nobody waits for any more must not pile up.
    def tidy
      return if @gathered.size < @tidy_at

      @gathered.select!(&:waits?)
      @tidy_at = [2 * @gathered.size, TIDY_FROM].max
    end

    def run
      Thread.current.name = "fila #{@rpc}"
      serve while wait_for_work
    end

    def wait_for_work
      @lock.synchronize do
        @gathered.select!(&:waits?)
        @changed.wait(@lock) until @ended || !@window.empty? || !@gathered.empty?
        !@ended
      end
    end

    def serve
      turn = Turn.new(self, @connection.address)
      failure = use(turn)
      wait(@lock.synchronize { after(turn, failure) })
    rescue ClosedError => e
      give_up(ClosedError.new(e.message))
    rescue StandardError => e
      wait(broken(e))
    end

    # @return [GRPC::BadStatus, PutOff, nil] how the stream ended
    def use(turn)
      operation = @connection.stream(@rpc, turn, @response, address: turn.address) { |answer| answered(answer) }
      @lock.synchronize do
        turn.operation = operation
        @turn = turn
        operation.cancel if @ended
      end
      operation.execute
      nil
    rescue GRPC::BadStatus, PutOff => e
      e
    rescue GRPC::Core::CallError => e
      GRPC::Unavailable.new(e.message)
    ensure
      finish(turn)
    end

    def finish(turn)
      @lock.synchronize do
        turn.over = true
        @turn = nil
        @changed.broadcast
      end
      turn.operation&.cancel
      turn.writer&.join
    end

    def answered(answer)
      batch = @lock.synchronize do
        found = @window.answered(answer.sequence) or raise InternalError, 'the broker answered what was not asked'
        put_off(found, answer.error) if answer.error
        @comeback.answered
        @trouble = nil
        @changed.broadcast
        found
      end
      @codec.answer(batch, answer)
    rescue PutOff
      raise
    rescue StandardError
      # Its callers wait no longer, though it is not in flight any more.
      batch&.fail(InternalError.new("the answer on #{@rpc} cannot be used"))
      raise
    end

    # A refused batch that has to come again is in flight until the stream has ended, so that nothing overtakes it.
    def put_off(batch, error)
      refusal = ErrorMapping.from_proto(error)
      return unless batch.comes_again?(refusal)

      @window.again(batch)
      raise PutOff, refusal
    end

    # An answer that cannot be understood, or a defect. Nobody can tell what became of the requests in flight. Others go
    # onto the next stream. Returns how long to wait before.
    def broken(cause)
      error = InternalError.new("the stream #{@rpc} failed: #{cause.message}")
      waiters, pause = @lock.synchronize do
        @trouble = error.message
        [@window.clear.flat_map(&:waiters), @comeback.next_wait]
      end
      waiters.each { |waiter| waiter.fail(error) }
      pause
    end

    # What to do after the end of a stream. Returns how long to wait.
    def after(turn, failure)
      if failure.nil?
        @window.lost
        return @connection.address == turn.address ? @comeback.next_wait : 0.0
      end
      error = failure.is_a?(PutOff) ? failure.refusal : ErrorMapping.from_status(failure)
      @trouble = "#{turn.address}: #{error.message}"
      pause = lost?(failure) ? @comeback.after_loss(turn.address) : @comeback.after_refusal(error, turn.address)
      return refuse(error) unless pause

      @window.lost
      pause
    end

    def lost?(failure)
      !failure.is_a?(PutOff) && ErrorMapping.lost?(failure)
    end

    def refuse(error)
      if error.is_a?(PermissionDeniedError)
        # No other batch could succeed either.
        (@window.clear.flat_map(&:waiters) + @gathered.slice!(0..)).each { |waiter| waiter.fail(error) }
        return 0.0
      end
      @window.refused&.fail(error)
      @comeback.next_wait
    end

    def wait(seconds)
      ends = Clock.now + seconds
      @lock.synchronize do
        while !@ended && (left = ends - Clock.now).positive?
          @changed.wait(@lock, left)
        end
      end
    end

    def give_up(error)
      waiters = @lock.synchronize do
        @ended ||= error
        @window.clear.flat_map(&:waiters) + @gathered.slice!(0..)
      end
      waiters.each { |waiter| waiter.fail(error) }
    end
  end
end
