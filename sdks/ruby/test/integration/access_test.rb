# frozen_string_literal: true

require 'test_helper'
require 'fila/v1/auth_services_pb'

# TLS, client certificates and keys.
class AccessTest < FilaTest
  def setup
    @folder = Dir.mktmpdir
    @authority = Certificates.new(@folder)
  end

  def teardown
    FileUtils.remove_entry(@folder)
  end

  def test_tls_with_the_ca_of_the_server
    secured do |address|
      assert_works(address, tls: { ca: @authority.ca })
      # The certificate is for localhost.
      named = Fila::TLS.new(ca: @authority.ca, server_name: 'localhost')
      assert_works(address.sub('localhost', '127.0.0.1'), tls: named)
    end
  end

  def test_a_server_that_cannot_prove_its_name_is_not_talked_to
    secured do |address|
      stranger = Certificates.new(@folder, 'stranger')
      refute_works(address, tls: { ca: stranger.ca })
      refute_works(address, tls: { ca: @authority.ca, server_name: 'elsewhere' })
      refute_works(address, tls: true)
    end
  end

  def test_client_certificates
    secured("client_ca = \"#{@authority.ca}\"\nclient_auth = \"required\"\n") do |address|
      mine = @authority.client
      strange = Certificates.new(@folder, 'stranger').client
      assert_works(address, tls: { ca: @authority.ca, cert: mine.cert, key: mine.key })
      refute_works(address, tls: { ca: @authority.ca })
      refute_works(address, tls: { ca: @authority.ca, cert: strange.cert, key: strange.key })
    end
  end

  def test_keys_and_rights
    FilaServer.run do |server|
      admin = make_key(server.address, 'admin', 'admin')
      producer = make_key(server.address, 'maker', 'producer', admin)
      assert_works(server.address, api_key: admin)
      Fila::Client.open(server.address, timeout: 60) do |client|
        [-> { client.describe }, -> { client.enqueue(queue: 'q') }].each do |call|
          assert_equal :UNAUTHENTICATED, assert_raises(Fila::PermissionDeniedError, &call).kind
        end
      end
      Fila::Client.open(server.address, api_key: producer, timeout: 60) do |client|
        assert_kind_of String, client.enqueue(queue: 'q')
        error = assert_raises(Fila::PermissionDeniedError) { client.delete_queue(queue: 'q') }
        assert_equal :PERMISSION_DENIED, error.kind
        assert_raises(Fila::PermissionDeniedError) { client.consume(queue: 'q').pop }
      end
    end
  end

  # A key is rotated by replacing its file: streams that are open go on with the new one.
  def test_a_revoked_key_is_replaced_by_the_one_that_is_in_the_file_then
    FilaServer.run do |server|
      admin = make_key(server.address, 'admin', 'admin')
      file = File.join(@folder, 'key')
      File.write(file, make_key(server.address, 'worker', 'admin', admin))
      Fila::Client.open(server.address, api_key_file: file, timeout: 60) do |client|
        client.create_queue(queue: 'q')
        client.enqueue(queue: 'q', payload: 'one')
        consumer = client.consume(queue: 'q')
        consumer.pop.ack
        old = File.read(file)
        File.write(file, make_key(server.address, 'worker', 'admin', admin))
        revoke(server.address, old, admin)
        client.enqueue(queue: 'q', payload: 'two')

        assert_equal 'two', consumer.pop(timeout: 60).tap(&:ack).payload
      end
    end
  end

  private

  def secured(more = '', &block)
    pair = @authority.server
    config = "[tls]\ncert = \"#{pair.cert}\"\nkey = \"#{pair.key}\"\n#{more}"
    FilaServer.run(config: config, host: 'localhost') { |server| block.call(server.address) }
  end

  def assert_works(address, **options)
    Fila::Client.open(address, timeout: 60, **options) do |client|
      client.ensure_queue(queue: 'q')
      client.enqueue(queue: 'q', payload: 'x')
      assert_equal 'x', client.consume(queue: 'q') { |message| break message.tap(&:ack).payload }
    end
  end

  # Both try again until their time is over.
  def refute_works(address, **options)
    Fila::Client.open(address, **options) do |client|
      assert_raises(Fila::UnavailableError) { client.describe(timeout: 0.5) }
      assert_raises(Fila::UnavailableError) { client.enqueue(queue: 'q', timeout: 2) }
    end
  end

  def auth(address)
    Fila::V1::FilaAuth::Stub.new(address, :this_channel_is_insecure)
  end

  def make_key(address, principal, role, admin = nil)
    request = Fila::V1::CreateKeyRequest.new(principal: principal, roles: [role])
    auth(address).create_key(request, metadata: bearer(admin)).token
  end

  def revoke(address, token, admin)
    id = auth(address).list_keys(Fila::V1::ListKeysRequest.new, metadata: bearer(admin)).keys
                      .map(&:id).find { |one| token.include?(one) }
    auth(address).revoke_key(Fila::V1::RevokeKeyRequest.new(key_id: id), metadata: bearer(admin))
  end

  def bearer(key)
    key ? { 'authorization' => "Bearer #{key}" } : {}
  end
end
