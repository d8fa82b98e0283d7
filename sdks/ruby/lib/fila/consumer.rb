# frozen_string_literal: true

module Fila
  # The messages of a queue: an Enumerator that never ends by itself.
  #
  # `each`, `lazy` and the like belong to one thread; {#pop} may be called by many. Leaving a loop does not stop the
  # consumer: {#stop} does, and so does the end of the block of {Client#consume}. One that the program has lost hold of
  # is stopped by the garbage collector.
  class Consumer < Enumerator
    # What the garbage collector calls. It must not know the consumer, or that would never be collected.
    # @api private
    def self.finalizer(feed)
      proc { feed.let_go }
    end

    # @api private
    def initialize(feed)
      @feed = feed
      super() do |yielder|
        while (message = pop)
          give(message, yielder)
        end
      end
      ObjectSpace.define_finalizer(self, self.class.finalizer(feed))
    end

    # @return [String]
    def queue
      @feed.queue
    end

    # The next message, once there is one. Whoever is interrupted (`Timeout.timeout`, `Thread#raise`) takes none.
    # @param timeout [Numeric, nil] seconds; nil waits for ever
    # @return [ConsumeMessage, nil] nil: the time is over, or the consumer was stopped
    # @raise [Error] the broker refused the consumer
    def pop(timeout: nil)
      @feed.pop(timeout)
    end

    # Change how many messages may be prefetched or unsettled. 0 holds the delivery.
    # @param credit [Integer]
    def max_in_flight=(credit)
      @feed.credit = credit
    end

    # @return [Integer] how many messages are prefetched
    def waiting
      @feed.waiting
    end

    # End gracefully: what the application was never handed goes back and counts no attempt. What it holds can still be
    # settled. Returns when the broker has confirmed it, or is away.
    def stop
      @feed.stop
      self
    end

    # @return [Boolean]
    def stopped?
      @feed.stopped?
    end

    # @return [String]
    def inspect
      "#<#{self.class} queue=#{queue}>"
    end

    private

    # A message that an exception leaves behind is settled by nobody. Whatever it is, it is raised again.
    def give(message, yielder)
      yielder << message
    rescue Exception # rubocop:disable Lint/RescueException
      @feed.forsake(message)
      raise
    end
  end
end
