# frozen_string_literal: true

require 'timeout'

# The operations of the driver, one method each.
module Operations
  OPTIONS = %i[dedup_key delay_ms priority].freeze

  private

  def op_hello(_)
    { sdk: 'ruby', version: Fila::VERSION, language: "ruby#{RUBY_VERSION}", grpc: GRPC::VERSION }
  end

  def op_connect(request)
    tls = request[:tls]&.slice(:ca, :cert, :key, :server_name)
    made = Fila::Client.new(request[:addresses], api_key: request[:api_key], tls: tls)
    @lock.synchronize { @clients[request.fetch(:client, 'c')] = made }
    nil
  end

  def op_close(request)
    name = request.fetch(:client, 'c')
    @lock.synchronize { @clients.delete(name) }&.close
    nil
  end

  def op_describe(request)
    found = client(request).describe(**timeout(request))
    { version: found.version, max_payload_bytes: found.limits.max_payload_bytes }
  end

  def op_create_queue(request)
    client(request).create_queue(queue: request[:queue], **request.fetch(:settings, {}), **timeout(request))
    nil
  end

  def op_delete_queue(request)
    client(request).delete_queue(queue: request[:queue], **timeout(request))
    nil
  end

  def op_list_queues(request)
    { queues: client(request).list_queues(**timeout(request)).map(&:name) }
  end

  def op_stats(request)
    stats = client(request).stats(queue: request[:queue], **timeout(request)).summary
    dlq = stats.dead_letter_queue
    dead = dlq.empty? ? 0 : client(request).stats(queue: dlq, **timeout(request)).summary.depth
    { depth: stats.depth, in_flight: stats.in_flight, dead_letters: dead }
  end

  def op_set_config(request)
    client(request).set_config(key: request[:key], value: request[:value], **timeout(request))
  end

  def op_get_config(request)
    { value: client(request).get_config(key: request[:key], **timeout(request)) }
  end

  def op_delete_config(request)
    client(request).delete_config(key: request[:key], **timeout(request))
    nil
  end

  def op_list_config(request)
    { entries: client(request).list_config(prefix: request.fetch(:prefix, ''), **timeout(request)) }
  end

  def op_enqueue(request)
    enqueued(client(request).enqueue_result(queue: request[:queue], **message(request), **timeout(request)))
  end

  def op_enqueue_many(request)
    messages = request[:messages].map { |one| message(one) }
    results = begin
      client(request).enqueue_many(queue: request[:queue], messages: messages, **timeout(request))
    rescue Fila::EnqueueManyError => e
      e.results
    end
    { results: results.map { |result| result.ok? ? enqueued(result) : { error: told(result.error) } } }
  end

  def op_cancel_enqueue(request)
    Timeout.timeout(request[:after_ms] / 1000.0, Fila::CancelledError) { op_enqueue(request) }
  end

  def op_consume(request)
    options = request.slice(:queue, :max_in_flight).compact
    consumer = client(request).consume(**options)
    @lock.synchronize { @consumers[request[:consumer]] = consumer }
    nil
  end

  def op_next(request)
    consumer = consumer(request)
    deadline = now + (request.fetch(:timeout_ms, 5000) / 1000.0)
    messages = []
    while messages.size < request.fetch(:count, 1)
      taken = consumer.pop(timeout: [deadline - now, 0].max) or break
      @lock.synchronize { @held[taken.id] = taken }
      messages << taken
    end
    { messages: messages.map { |one| shown(one) } }
  end

  def op_ack(request)
    held(request).ack(**timeout(request))
  end

  def op_nack(request)
    held(request).nack(**request.slice(:error, :delay_ms).compact, **timeout(request))
  end

  def op_release(request)
    held(request).release(**timeout(request))
  end

  def op_reject(request)
    held(request).reject(**request.slice(:error).compact, **timeout(request))
  end

  def op_extend(request)
    held(request).extend_lease(**request.slice(:extend_ms).compact, **timeout(request))
  end

  def op_ack_by_id(request)
    client(request).ack(queue: request[:queue], msg_id: request[:message], **timeout(request))
  end

  def op_nack_by_id(request)
    client(request).nack(queue: request[:queue], msg_id: request[:message], error: request.fetch(:error, ''),
                         **timeout(request))
  end

  def op_stop(request)
    consumer(request).stop
    nil
  end

  def op_explain(request)
    about = client(request).explain(queue: request[:queue], msg_id: request[:message], **timeout(request))
    { reason: about.reasons.first&.code.to_s.delete_prefix('WAIT_CAUSE_') }
  end

  def op_redrive(request)
    { count: client(request).redrive(dlq: request[:queue], **timeout(request)) }
  end

  def op_peek(request)
    count = request[:count] ? { count: request[:count] } : {}
    { ids: client(request).peek(queue: request[:queue], **count, **timeout(request)).map { |one| one.message.id } }
  end

  def op_resources(_)
    # Without the directory that is being listed.
    { threads: Thread.list.size, tasks: 0, handles: Dir.children('/proc/self/fd').size - 1 }
  end

  def message(request)
    headers = request.fetch(:headers, nil) || {}
    { headers: headers.transform_keys(&:to_s), payload: request.fetch(:payload, '').unpack1('m'),
      **(request[:options] || {}).slice(*OPTIONS).compact }
  end

  def enqueued(result)
    { id: result.id, duplicate: result.duplicate? }
  end

  def shown(message)
    { id: message.id, queue: message.queue, headers: message.headers, payload: [message.payload].pack('m0'),
      fairness_key: message.fairness_key, attempt_count: message.attempt_count, lease_id: message.lease_id }
  end

  def consumer(request)
    @lock.synchronize { @consumers.fetch(request[:consumer]) }
  end

  def held(request)
    @lock.synchronize { @held[request[:message]] } ||
      raise(Fila::InvalidArgumentError, "no message #{request[:message]} is held")
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
