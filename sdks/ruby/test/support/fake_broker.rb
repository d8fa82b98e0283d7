# frozen_string_literal: true

# A gRPC server in this process that answers as a test tells it to: what a real broker does rarely, such as naming
# another member of a cluster.
class FakeBroker
  V1 = Fila::V1

  # An answer that no client can read.
  class Garbage
    def self.encode(_)
      "\xFF\xFF\xFF".b
    end
  end

  # Calls that are open at a time.
  POOL = 16

  attr_reader :address, :calls

  # A broker for the time of the block.
  # @param handlers [Hash{Symbol => Proc}] name of an RPC => what answers it, given the request or all of a stream, and
  #   the view of gRPC on the call
  def self.run(**handlers)
    broker = new(handlers)
    yield broker
  ensure
    broker&.stop
  end

  # @return [GRPC::BadStatus] a refusal as the broker sends it
  def self.refusal(kind, code: GRPC::Core::StatusCodes::UNAVAILABLE, text: 'refused', owner: nil, **fields)
    error = V1::Error.new(code: code, kind: :"ERROR_KIND_#{kind}", **fields)
    status = Google::Rpc::Status.new(code: code, message: text, details: [Google::Protobuf::Any.pack(error)])
    trailers = { 'grpc-status-details-bin' => Google::Rpc::Status.encode(status), 'fila-owner' => owner }.compact
    GRPC::BadStatus.new(code, text, trailers)
  end

  def initialize(handlers)
    @calls = Queue.new
    @server = GRPC::RpcServer.new(pool_size: POOL, pool_keep_alive: 1, poll_period: 1)
    @address = "127.0.0.1:#{@server.add_http2_port('127.0.0.1:0', :this_port_is_insecure)}"
    @server.handle(service(V1::FilaService, handlers))
    @server.handle(service(V1::FilaAdmin, handlers))
    @thread = Thread.new { @server.run }
    @server.wait_till_running
  end

  def stop
    @server.stop
    @thread.join
  end

  private

  def service(definition, handlers)
    calls = @calls
    Class.new(definition::Service) do
      definition::Service.rpc_descs.each_key do |rpc|
        name = GRPC::GenericService.underscore(rpc.to_s).to_sym
        handler = handlers[name] or next
        define_method(name) do |given, call|
          calls << name
          handler.call(given, call)
        end
      end
    end
  end
end
