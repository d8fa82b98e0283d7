# frozen_string_literal: true

require 'test_helper'

class ErrorMappingTest < FilaTest
  V1 = Fila::V1
  Codes = GRPC::Core::StatusCodes

  def test_every_kind_of_the_contract_has_an_error
    kinds = V1::ErrorKind.constants.map { |kind| kind.to_s.delete_prefix('ERROR_KIND_').to_sym } - [:UNSPECIFIED]

    assert_equal kinds.sort, Fila::ErrorMapping::BY_KIND.keys.sort
  end

  def test_a_status_goes_by_the_kind_in_its_details_not_by_its_text
    status = FakeBroker.refusal(:QUEUE_NOT_FOUND, code: Codes::NOT_FOUND, text: 'message not found')
    error = Fila::ErrorMapping.from_status(status)

    assert_instance_of Fila::QueueNotFoundError, error
    assert_equal ['message not found', :QUEUE_NOT_FOUND, false], [error.message, error.kind, error.retryable?]
  end

  # gRPC gives texts without an encoding.
  def test_texts_are_utf_8
    metadata = FakeBroker.refusal(:NOT_OWNER).metadata.merge('fila-owner' => 'b:1'.b)
    status = GRPC::BadStatus.new(Codes::UNAVAILABLE, 'queue "café"'.b, metadata)
    plain = GRPC::BadStatus.new(Codes::UNAVAILABLE, "caf\xC3\xA9 \xFF".b)

    assert_equal 'queue "café"', Fila::ErrorMapping.from_status(status).message
    assert_equal Encoding::UTF_8, Fila::ErrorMapping.from_status(status).owner.encoding
    assert_equal "café \uFFFD", Fila::ErrorMapping.from_status(plain).message
  end

  def test_tells_when_to_try_again_and_where
    status = FakeBroker.refusal(:NOT_OWNER, owner: 'b:1', retryable: true, retry_after_ms: 250)
    error = Fila::ErrorMapping.from_status(status)

    assert_equal ['b:1', 0.25, true], [error.owner, error.retry_after, error.retryable?]
  end

  def test_an_unknown_kind_goes_by_retryable_then_by_the_code
    full = Fila::ErrorMapping.from_proto(V1::Error.new(kind: 999, code: Codes::RESOURCE_EXHAUSTED, message: 'new'))
    other = Fila::ErrorMapping.from_proto(V1::Error.new(kind: 999, code: Codes::INVALID_ARGUMENT, retryable: true))

    assert_instance_of Fila::OverloadedError, full
    assert_equal [:KIND_999, true, true], [full.kind, full.retryable?, other.retryable?]
    assert_instance_of Fila::InvalidArgumentError, other
  end

  def test_a_status_without_details_is_a_lost_connection
    [Codes::UNAVAILABLE, Codes::CANCELLED, Codes::INTERNAL, Codes::UNKNOWN].each do |code|
      assert Fila::ErrorMapping.lost?(GRPC::BadStatus.new(code, 'gone'))
    end
    refute Fila::ErrorMapping.lost?(GRPC::BadStatus.new(Codes::DEADLINE_EXCEEDED, 'late'))
    refute Fila::ErrorMapping.lost?(FakeBroker.refusal(:SHUTTING_DOWN))
  end

  def test_damaged_details_are_no_details
    status = GRPC::BadStatus.new(Codes::UNAVAILABLE, 'x', { 'grpc-status-details-bin' => "\xFF\xFF".b })

    assert Fila::ErrorMapping.lost?(status)
  end

  def test_an_error_of_enqueue_many_has_the_results
    failure = Fila::EnqueueResult.new(nil, false, Fila::QueueFullError.new('full', kind: :QUEUE_FULL, retryable: true))
    error = Fila::EnqueueManyError.new([Fila::EnqueueResult.new('1', false, nil), failure])

    assert_equal '1 of 2 messages not enqueued: full', error.message
    assert_equal [:QUEUE_FULL, true, 2], [error.kind, error.retryable?, error.results.size]
  end
end
