# frozen_string_literal: true

# The operations of the driver that make load.
module Load
  LATENCY_THREADS = 16

  private

  def op_produce(request)
    ids = Array.new(request[:count])
    errors = []
    seconds = timed { produce(request, ids, errors) }
    { ids: ids.compact, errors: errors, seconds: seconds }
  end

  def op_work(request)
    ids = []
    payloads = []
    deadline = now + (request.fetch(:timeout_ms, 60_000) / 1000.0)
    seconds = timed do
      work(request, deadline) do |message|
        ids << message.id
        payloads << message.payload.byteslice(0, 32).force_encoding(Encoding::UTF_8).scrub
      end
    end
    { ids: ids, payloads: payloads, seconds: seconds }
  end

  def op_lifecycle(request)
    errors = []
    seconds = timed do
      producing = Thread.new { produce(request, Array.new(request[:count]), errors) }
      work(request, now + 600) { nil }
      producing.join
    end
    raise Fila::InternalError, errors.first[:message] unless errors.empty?

    { seconds: seconds }
  end

  def op_latency(request)
    request = request.merge(concurrency: LATENCY_THREADS)
    consumer = client(request).consume(queue: request[:queue])
    took = Queue.new
    left = numbers(request[:count])
    reading = Thread.new { in_threads(request) { took << arrived(consumer.pop(timeout: 60)) while left.pop } }
    enqueue_at_rate(request)
    reading.join
    consumer.stop
    percentiles(Array.new(took.size) { took.pop })
  end

  # A thread waits for its answer, so several take turns: a slow answer delays no later message.
  def enqueue_at_rate(request)
    began = now
    left = numbers(request[:count])
    in_threads(request) do
      while (number = left.pop)
        wait = began + (number / request[:rate].to_f) - now
        sleep wait if wait.positive?
        client(request).enqueue(queue: request[:queue], payload: now.to_s.ljust(request[:size], ' '))
      end
    end
  end

  # All numbers below that, each for one thread.
  def numbers(count)
    queue = Queue.new
    count.times { |number| queue << number }
    queue.close
  end

  def arrived(message)
    took = now - message.payload.to_f
    message.ack
    took
  end

  def percentiles(took)
    sorted = took.sort
    { p50_us: sorted[sorted.size / 2] * 1e6, p99_us: sorted[(sorted.size * 0.99).to_i.clamp(0, sorted.size - 1)] * 1e6 }
  end

  def produce(request, ids, errors)
    left = numbers(request[:count])
    in_threads(request) do
      while (number = left.pop)
        ids[number] = produce_one(request, number, errors)
      end
    end
  end

  def produce_one(request, number, errors)
    headers = (request[:headers] || {}).transform_keys(&:to_s)
    client(request).enqueue(queue: request[:queue], headers: headers, **timeout(request),
                            payload: "#{number} ".ljust(request.fetch(:size, 0), 'x'))
  rescue Fila::Error => e
    errors << told(e)
    nil
  end

  # Handles and acks until so many are acked or the time is over. Yields what was acked, one at a time.
  def work(request, deadline)
    options = request.slice(:queue, :max_in_flight).compact
    consumer = client(request).consume(**options)
    lock = Mutex.new
    left = request[:count]
    in_threads(request) do
      while lock.synchronize { left.positive? } && now < deadline
        message = consumer.pop(timeout: 0.05) or next
        sleep request[:handler_ms] / 1000.0 if request[:handler_ms].to_i.positive?
        next unless acked?(message)

        lock.synchronize do
          left -= 1
          yield message
        end
        consumer.stop unless left.positive? # nobody waits for another one
      end
    end
  ensure
    consumer&.stop
  end

  # One whose lease ended with a lost connection is delivered again.
  def acked?(message)
    message.ack
    true
  rescue Fila::MessageNotFoundError
    false
  end

  def in_threads(request, &block)
    Array.new([request.fetch(:concurrency, 1), 1].max) { Thread.new(&block) }.each(&:join)
  end

  def timed
    began = now
    yield
    now - began
  end
end
