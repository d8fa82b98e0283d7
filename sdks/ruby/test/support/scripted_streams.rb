# frozen_string_literal: true

# Fake brokers whose streams answer one request after the other as a test tells them to.
module ScriptedStreams
  V1 = Fila::V1

  private

  def with_broker(**handlers)
    FakeBroker.run(**handlers) do |broker|
      Fila::Client.open(broker.address, timeout: 600) { |client| yield client, broker }
    end
  end

  def with_enqueue_stream(answers, &block)
    with_broker(enqueue_stream: in_turn(answers), &block)
  end

  # Answers the first request of all streams in the first way, the next one in the next way; the last way stays.
  def in_turn(answers)
    lambda do |requests, *|
      requests.lazy.map { |request| (answers.size > 1 ? answers.shift : answers.first).call(request) }
    end
  end

  def lost(request, seen)
    seen << request.sequence
    raise GRPC::Unavailable, 'lost'
  end

  def enqueued(request, seen = [])
    seen << request.sequence
    results = request.messages.map { V1::EnqueueResult.new(message_id: 'there') }
    V1::EnqueueBatchResponse.new(sequence: request.sequence, results: results)
  end
end
