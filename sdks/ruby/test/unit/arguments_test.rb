# frozen_string_literal: true

require 'test_helper'

# A wrong argument is refused before anything is sent: the address of these clients leads nowhere.
class ArgumentsTest < FilaTest
  def setup
    @client = Fila::Client.new('127.0.0.1:1', timeout: 5)
  end

  def teardown
    @client.close
  end

  def test_messages_are_checked
    [{ queue: 5 }, { queue: "\xFF" }, { queue: 'q', payload: 5 }, { queue: 'q', headers: 'x' },
     { queue: 'q', headers: { 'a' => 1 } }, { queue: 'q', headers: { 'a' => "\xFF" } },
     { queue: 'q', delay_ms: 'soon' }, { queue: 'q', priority: 2**40 }].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { @client.enqueue(**wrong) }
    end
    assert_raises(Fila::InvalidArgumentError) { @client.enqueue_many(queue: 'q', messages: [5]) }
    assert_raises(Fila::InvalidArgumentError) { @client.enqueue_many(queue: 'q', messages: [{ body: 'x' }]) }
    assert_raises(Fila::InvalidArgumentError) { @client.enqueue_many(queue: 'q', messages: nil) }
  end

  def test_consumers_are_checked
    assert_raises(Fila::InvalidArgumentError) { @client.consume(queue: :orders) }
    [-1, 2**32, 1.5, nil].each do |credit|
      assert_raises(Fila::InvalidArgumentError, credit.inspect) do
        @client.consume(queue: 'q', max_in_flight: credit)
      end
    end
  end

  def test_queues_and_throttles_are_checked
    assert_raises(Fila::InvalidArgumentError) { @client.create_queue(queue: 'q', no_such_setting: 1) }
    assert_raises(Fila::InvalidArgumentError) { @client.set_throttle(key: 'k') }
    assert_raises(Fila::InvalidArgumentError) { @client.redrive(dlq: 'q.dlq', count: 0) }
    assert_raises(Fila::InvalidArgumentError) { @client.purge(queue: 'q.dlq', filter: nil) }
  end

  # The broker could not even read such a request.
  def test_texts_of_operators_are_checked
    calls = [->(text) { @client.create_queue(queue: text) }, ->(text) { @client.stats(queue: text) },
             ->(text) { @client.set_config(key: 'k', value: text) }, ->(text) { @client.list_config(prefix: text) },
             ->(text) { @client.peek(queue: 'q', filter: { fairness_key: text }) },
             ->(text) { @client.create_queue(queue: 'q', throttle_headers: ['a', text]) },
             ->(text) { @client.explain(queue: 'q', msg_id: text) }]
    calls.each_with_index do |call, index|
      ["\xFF", "\xFF".b].each { |text| assert_raises(Fila::InvalidArgumentError, index.to_s) { call.call(text) } }
    end
    assert_raises(Fila::InvalidArgumentError) { @client.stats(queue: nil) }
  end

  def test_timeouts_are_checked
    calls = [->(timeout) { @client.enqueue(queue: 'q', timeout: timeout) },
             ->(timeout) { @client.enqueue_many(queue: 'q', messages: ['x'], timeout: timeout) },
             ->(timeout) { @client.ack(queue: 'q', msg_id: 'x', timeout: timeout) },
             ->(timeout) { @client.describe(timeout: timeout) },
             ->(timeout) { @client.list_queues(timeout: timeout) },
             ->(timeout) { @client.consume(queue: 'q').pop(timeout: timeout) },
             ->(timeout) { Fila::Client.new('localhost:1', timeout: timeout) }]
    calls.product(['soon', -1, Float::NAN]).each do |call, timeout|
      assert_raises(Fila::InvalidArgumentError, timeout.inspect) { call.call(timeout) }
    end
  end

  def test_tls_is_checked
    [{ cert: 'a.pem' }, { ca: '/nowhere.pem' }, 'yes', { authority: 'x' }, { ca: 5 }, { ca: "a\0b" }].each do |wrong|
      assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::Client.new('localhost:1', tls: wrong) }
    end
  end

  def test_a_file_that_holds_no_certificate_or_key_is_refused
    Dir.mktmpdir do |folder|
      mine = Certificates.new(folder).client
      File.binwrite(odd = File.join(folder, 'odd.pem'), "no PEM \xFF")
      [{ ca: odd }, { cert: odd, key: mine.key }, { cert: mine.cert, key: odd }, { cert: mine.key, key: mine.cert }]
        .each do |wrong|
          assert_raises(Fila::InvalidArgumentError, wrong.inspect) { Fila::Client.new('localhost:1', tls: wrong) }
        end
    end
  end

  def test_a_closed_client_refuses_calls
    @client.close
    @client.close

    calls = [-> { @client.enqueue(queue: 'q') }, -> { @client.consume(queue: 'q') }, -> { @client.describe },
             -> { @client.ack(queue: 'q', msg_id: 'x') },
             -> { @client.enqueue_many(queue: 'q', messages: ['x']) }]
    calls.each { |call| assert_equal :CLOSED, assert_raises(Fila::ClosedError, &call).kind }
  end
end
