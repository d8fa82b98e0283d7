# frozen_string_literal: true

module Fila
  # Base of all errors of the SDK.
  class Error < StandardError
    # @return [Symbol] which refusal it is: a kind of the contract, such as :QUEUE_NOT_FOUND, or of the SDK itself
    #   :UNAVAILABLE, :DEADLINE_EXCEEDED, :CANCELLED or :CLOSED
    attr_reader :kind
    # @return [Float] if retryable: how many seconds to wait at least; 0 means that the caller chooses
    attr_reader :retry_after
    # @return [String] the address of the member of the cluster to ask instead, if the broker told it
    attr_reader :owner

    def initialize(message = nil, kind: default_kind, retryable: false, retry_after: 0.0, owner: '')
      super(message)
      @kind = kind
      @retryable = retryable
      @retry_after = retry_after
      @owner = owner
    end

    # Whether the same request may succeed later, though nobody changes anything.
    def retryable?
      @retryable
    end

    private

    def default_kind
      :UNSPECIFIED
    end
  end

  # The queue does not exist.
  class QueueNotFoundError < Error; end
  # A queue of that name exists.
  class QueueAlreadyExistsError < Error; end
  # No message is held under that lease: it expired, was settled before, or never existed.
  class MessageNotFoundError < Error; end
  # The runtime configuration has no such entry.
  class ConfigNotFoundError < Error; end
  # The request is valid, but not in the present state.
  class FailedPreconditionError < Error; end
  # The claim was acked, was never made, or ended during the call.
  class ClaimLostError < FailedPreconditionError; end
  # Another reader or a later start of the producer has taken over.
  class FencedError < FailedPreconditionError; end
  # The broker lacks staged messages of a transaction.
  class NotStagedError < FailedPreconditionError; end
  # Something is larger than its limit, or there are as many as there may be.
  class LimitExceededError < Error; end
  # Backpressure: the broker takes no more now. Retry later.
  class OverloadedError < Error; end
  # The queue holds as much as it may. Retry when messages were settled.
  class QueueFullError < OverloadedError; end
  # The broker does not accept the caller, or does not allow the call.
  class PermissionDeniedError < Error; end

  # The broker failed, or sent an unexpected answer.
  class InternalError < Error
    private

    def default_kind
      :INTERNAL
    end
  end

  # An argument is not valid.
  class InvalidArgumentError < Error
    private

    def default_kind
      :INVALID_ARGUMENT
    end
  end

  # The broker cannot be reached or is shutting down.
  class UnavailableError < Error
    private

    def default_kind
      :UNAVAILABLE
    end
  end

  # No answer in time. The request may or may not have been carried out.
  class TimeoutError < Error
    private

    def default_kind
      :DEADLINE_EXCEEDED
    end
  end

  # The call was cancelled. The request may or may not have been carried out.
  class CancelledError < Error
    private

    def default_kind
      :CANCELLED
    end
  end

  # The client was closed, or belongs to the parent of a forked process.
  class ClosedError < Error
    private

    def default_kind
      :CLOSED
    end
  end

  # The broker did not accept some messages of enqueue_many.
  class EnqueueManyError < Error
    # @return [Array<EnqueueResult>] one for each message, in order
    attr_reader :results

    def initialize(results)
      @results = results
      failed = results.reject(&:ok?)
      first = failed.first.error
      super("#{failed.size} of #{results.size} messages not enqueued: #{first.message}",
            kind: first.kind, retryable: failed.all? { |result| result.error.retryable? })
    end
  end
end
