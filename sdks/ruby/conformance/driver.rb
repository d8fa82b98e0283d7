# frozen_string_literal: true

# Carries out requests of the conformance runner with the public interface of the SDK: ../conformance/DRIVER.md

require 'fila'
require 'json'
require_relative 'operations'
require_relative 'load'

# Reads requests, answers them from threads of their own, and ends with standard input.
class Driver
  include Operations
  include Load

  def initialize
    @output = Mutex.new
    @lock = Mutex.new
    @clients = {}
    @consumers = {}
    @held = {}
  end

  def run
    threads = []
    $stdin.each_line do |line|
      request = JSON.parse(line, symbolize_names: true)
      threads.select!(&:alive?)
      threads << Thread.new { answer(request) }
    end
    # What waits for messages ends with its client.
    @clients.each_value(&:close)
    threads.each(&:join)
  end

  private

  def answer(request)
    operation = :"op_#{request[:op]}"
    outcome = if respond_to?(operation, true)
                { ok: send(operation, request) || {} }
              else
                { error: { kind: 'UNSUPPORTED_OP', type: '', message: request[:op].to_s, retryable: false } }
              end
    put(id: request[:id], **outcome)
  rescue Fila::Error => e
    put(id: request[:id], error: told(e))
  rescue StandardError => e
    warn e.full_message(highlight: false)
    put(id: request[:id], error: { kind: 'INTERNAL', type: e.class.name, message: e.message, retryable: false })
  end

  def told(error)
    { kind: error.kind.to_s, type: error.class.name.split('::').last, message: error.message,
      retryable: error.retryable? }
  end

  def put(answer)
    line = JSON.generate(answer)
    @output.synchronize do
      $stdout.puts(line)
      $stdout.flush
    end
  end

  def client(request)
    name = request.fetch(:client, 'c')
    @lock.synchronize { @clients[name] } || raise(Fila::ClosedError, "there is no client #{name}")
  end

  def timeout(request)
    ms = request[:timeout_ms]
    ms ? { timeout: ms / 1000.0 } : {}
  end
end

Driver.new.run
