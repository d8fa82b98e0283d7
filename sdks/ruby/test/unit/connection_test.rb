# frozen_string_literal: true

require 'test_helper'

class ConnectionTest < FilaTest
  V1 = Fila::V1

  def setup
    @connection = Fila::Connection.new(Fila::Addresses.new('127.0.0.1:1'), Fila::ApiKey.new('fila_a_b', nil), nil)
  end

  def teardown
    @connection.refuse
    @connection.close
  end

  def test_a_broker_that_names_ever_more_members_costs_no_memory
    200.times { |n| @connection.make(V1::FilaService, "127.0.0.1:#{n + 1}", &:itself) }

    assert_operator @connection.instance_variable_get(:@channels).size, :<=, Fila::Connection::MOST_CHANNELS
  end

  def test_after_it_refuses_no_call_is_made
    @connection.refuse

    assert_raises(Fila::ClosedError) { @connection.make(V1::FilaService, '127.0.0.1:1') { flunk } }
    assert_raises(Fila::ClosedError) { @connection.ready?('127.0.0.1:1', now + 5) }
  end

  # A call that was passed on is a hint, which is not followed again at once.
  def test_who_passed_a_call_on_is_left_once_in_a_while
    @connection.passed_on({})
    assert_equal '127.0.0.1:1', @connection.address
    @connection.passed_on('fila-owner' => '127.0.0.1:2')
    assert_equal '127.0.0.1:2', @connection.address
    @connection.passed_on('fila-owner' => '127.0.0.1:3')
    assert_equal '127.0.0.1:2', @connection.address
  end

  def test_shows_no_key
    Dir.mktmpdir do |folder|
      authority = Certificates.new(folder)
      mine = authority.client
      tls = Fila::TLS.new(ca: authority.ca, cert: mine.cert, key: mine.key)
      client = Fila::Client.new('localhost:1', api_key: 'fila_secret', tls: tls)
      shown = client.instance_variables.map { |name| client.instance_variable_get(name).inspect }.join + client.inspect

      refute_match(/fila_secret|PRIVATE KEY/, shown)
    end
  end
end
