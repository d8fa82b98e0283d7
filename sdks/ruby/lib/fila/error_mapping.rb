# frozen_string_literal: true

require 'google/protobuf/well_known_types'
require 'google/rpc/status_pb'

module Fila
  # Translates refusals of the contract and ends of calls into errors. Goes by kinds and codes, never by text.
  # @api private
  module ErrorMapping
    Codes = GRPC::Core::StatusCodes

    BY_KIND = {
      INTERNAL: InternalError,
      INVALID_ARGUMENT: InvalidArgumentError,
      PAYLOAD_TOO_LARGE: LimitExceededError,
      TOO_LARGE: LimitExceededError,
      LIMIT_REACHED: LimitExceededError,
      QUEUE_NOT_FOUND: QueueNotFoundError,
      QUEUE_ALREADY_EXISTS: QueueAlreadyExistsError,
      MESSAGE_NOT_FOUND: MessageNotFoundError,
      LEASE_ENDED: MessageNotFoundError,
      MESSAGE_GONE: MessageNotFoundError,
      CONFIG_NOT_FOUND: ConfigNotFoundError,
      UNAUTHENTICATED: PermissionDeniedError,
      KEY_ENDED: PermissionDeniedError,
      PERMISSION_DENIED: PermissionDeniedError,
      FAILED_PRECONDITION: FailedPreconditionError,
      CLAIM_LOST: ClaimLostError,
      FENCED: FencedError,
      TOO_FAR_AHEAD: FailedPreconditionError,
      NOT_STAGED: NotStagedError,
      STALE_SEQUENCE: FailedPreconditionError,
      SEQUENCE_REUSED: FailedPreconditionError,
      PRODUCER_FENCED: FencedError,
      OVERLOADED: OverloadedError,
      QUOTA_EXCEEDED: OverloadedError,
      QUEUE_FULL: QueueFullError,
      SHUTTING_DOWN: UnavailableError,
      STORE_BUSY: UnavailableError,
      STORE_FULL: OverloadedError,
      STORE_FAILED: InternalError,
      NOT_OWNER: UnavailableError,
      UNSUPPORTED: FailedPreconditionError,
      PROVIDER_AWAY: UnavailableError
    }.freeze

    # Of statuses without a kind, and of kinds that this version does not know.
    BY_CODE = {
      Codes::INVALID_ARGUMENT => InvalidArgumentError,
      Codes::FAILED_PRECONDITION => FailedPreconditionError,
      Codes::RESOURCE_EXHAUSTED => OverloadedError,
      Codes::UNAVAILABLE => UnavailableError,
      Codes::CANCELLED => CancelledError,
      Codes::DEADLINE_EXCEEDED => TimeoutError,
      Codes::PERMISSION_DENIED => PermissionDeniedError,
      Codes::UNAUTHENTICATED => PermissionDeniedError
    }.freeze

    # What always may succeed later, whatever the kind.
    RETRYABLE_CODES = [Codes::RESOURCE_EXHAUSTED, Codes::UNAVAILABLE].freeze
    # How a call ends when its connection is lost.
    LOST_CODES = [Codes::UNAVAILABLE, Codes::CANCELLED, Codes::INTERNAL, Codes::UNKNOWN].freeze
    CODE_NAMES = Codes.constants.to_h { |name| [Codes.const_get(name), name] }.freeze
    PREFIX = 'ERROR_KIND_'
    # The trailer with the address of the member that has what was asked for.
    OWNER = 'fila-owner'

    module_function

    # @param error [V1::Error] a refusal of the contract
    # @param text [String] for one that has none of its own
    # @return [Error]
    def from_proto(error, text: '', owner: '')
      kind = kind_of(error)
      known = BY_KIND[kind]
      (known || BY_CODE.fetch(error.code, InternalError)).new(
        [error.message, text, kind.to_s].find { |one| !one.empty? },
        kind: kind,
        retryable: error.retryable || (known.nil? && RETRYABLE_CODES.include?(error.code)),
        retry_after: error.retry_after_ms / 1000.0,
        owner: error.owner.empty? ? owner : error.owner
      )
    end

    # @param status [GRPC::BadStatus] how a call ended
    # @return [Error]
    def from_status(status)
      details = details_of(status)
      return from_proto(details, text: Text.cleaned(status.details), owner: owner_in(status.metadata)) if details

      BY_CODE.fetch(status.code, InternalError).new(
        Text.cleaned(status.details), kind: CODE_NAMES.fetch(status.code, :UNKNOWN),
                                      retryable: RETRYABLE_CODES.include?(status.code)
      )
    end

    # What the broker says of its refusal; nil: it is not the broker that ended the call.
    def details_of(status)
      encoded = [status.metadata['grpc-status-details-bin']].flatten.compact.first or return nil
      found = Google::Rpc::Status.decode(encoded).details.first
      found&.unpack(V1::Error)
    rescue Google::Protobuf::ParseError
      nil
    end

    # Whether the connection was lost, rather than the broker refusing.
    def lost?(status)
      details_of(status).nil? && LOST_CODES.include?(status.code)
    end

    def kind_of(error)
      # An unknown number of an enum stays a number.
      error.kind.is_a?(Symbol) ? error.kind.to_s.delete_prefix(PREFIX).to_sym : :"KIND_#{error.kind}"
    end

    # @param trailers [Hash] of a call that has ended
    # @return [String] empty if they name nobody
    def owner_in(trailers)
      Text.cleaned([trailers[OWNER]].flatten.first)
    end
  end
end
