# frozen_string_literal: true

require 'test_helper'
require 'open3'

# What happens after a fork. gRPC works in one process only: the one that has used it first, so each test is a program.
class ForkTest < FilaTest
  def test_in_a_child_every_call_of_the_clients_of_its_parent_says_so
    said = program(<<~RUBY)
      client.create_queue(queue: 'q')
      consumer = client.consume(queue: 'q')
      calls = [-> { client.enqueue(queue: 'q') }, -> { client.describe }, -> { client.ack(queue: 'q', msg_id: 'x') },
               -> { client.consume(queue: 'q') }, -> { consumer.pop }]
      in_child { calls.map { |call| error_of(&call) } + [consumer.stop.stopped?, client.close] }
    RUBY

    assert_equal [*[['Fila::ClosedError', :CLOSED]] * 5, true, nil].inspect, said
  end

  def test_in_a_child_of_a_parent_that_has_used_grpc_every_call_of_a_new_client_says_so
    said = program(<<~RUBY)
      client.describe
      in_child do
        mine = Fila::Client.new(ARGV.first, timeout: 600)
        calls = [-> { mine.enqueue(queue: 'q') }, -> { mine.describe }, -> { mine.ack(queue: 'q', msg_id: 'x') },
                 -> { mine.consume(queue: 'q').pop }]
        calls.map { |call| error_of(&call) } + [mine.close]
      end
    RUBY

    assert_equal [*[['Fila::ClosedError', :CLOSED]] * 4, nil].inspect, said
  end

  # Such as one that a preloading server has made and its workers use.
  def test_a_client_that_its_parent_has_not_used_works_in_every_child
    queue = queue_name
    said = program(<<~RUBY)
      2.times do
        in_child do
          client.ensure_queue(queue: '#{queue}')
          client.enqueue(queue: '#{queue}', payload: 'x')
          [client.consume(queue: '#{queue}') { |message| break message.tap(&:ack).payload }, client.close]
        end
      end
    RUBY

    assert_equal %(["x", nil]\n["x", nil]), said
  end

  # The lease of the parent lives, so its connection does.
  def test_a_child_that_closes_the_client_of_its_parent_costs_the_parent_nothing
    queue = queue_name
    said = program(<<~RUBY)
      client.create_queue(queue: '#{queue}')
      client.enqueue(queue: '#{queue}')
      held = client.consume(queue: '#{queue}').pop
      in_child do
        client.close
        GC.start
      end
      p held.ack
    RUBY

    assert_equal "nil\nnil", said
  end

  private

  HELPERS = <<~RUBY
    require 'fila'

    # Prints what the block returns. The finalizers of gRPC would end the connections of the parent.
    def in_child
      Process.wait(fork do
        p yield
        $stdout.flush
        exit!
      end)
    end

    def error_of
      yield
    rescue StandardError => e
      [e.class.name, e.respond_to?(:kind) && e.kind]
    end

    client = Fila::Client.new(ARGV.first, timeout: 600)
  RUBY
  private_constant :HELPERS

  def program(code)
    lib = File.expand_path('../../lib', __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, '-I', lib, '-e', HELPERS + code, FilaServer.shared.address)

    assert_predicate status, :success?, output
    output.chomp
  end
end
