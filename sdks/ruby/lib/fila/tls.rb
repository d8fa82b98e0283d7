# frozen_string_literal: true

module Fila
  # TLS of a client.
  #
  # @!attribute ca
  #   @return [String, nil] file with the CAs to trust (PEM); nil means those of gRPC
  # @!attribute cert
  #   @return [String, nil] file with the certificate of the client (PEM), for mutual TLS
  # @!attribute key
  #   @return [String, nil] file with its private key (PEM)
  # @!attribute server_name
  #   @return [String, nil] whom the certificate of the server is for, where that is not the host of the address
  TLS = Struct.new(:ca, :cert, :key, :server_name, keyword_init: true) do
    # @api private
    # @return [TLS, nil] what the argument of a client means
    def self.from(given)
      case given
      when nil, false then nil
      when true then new
      when TLS then given
      when Hash then new(**given)
      else raise InvalidArgumentError, 'tls must be true, a Fila::TLS or its fields'
      end
    rescue ArgumentError => e
      raise InvalidArgumentError, "tls: #{e.message}"
    end

    # @api private
    # Reads the files. gRPC is not asked yet: a process that has asked it cannot fork any more.
    # @return [Array<String, nil>] what gRPC::Core::ChannelCredentials takes
    def pems
      raise InvalidArgumentError, 'cert and key of TLS belong together' if cert.nil? != key.nil?

      [read(ca, 'CERTIFICATE'), read(key, 'PRIVATE KEY'), read(cert, 'CERTIFICATE')]
    end

    # @api private
    def channel_args
      server_name ? { GRPC::Core::Channel::SSL_TARGET => server_name, 'grpc.default_authority' => server_name } : {}
    end

    private

    def read(path, kind)
      return nil if path.nil?

      text = File.read(path)
      return text if text.b.match?(/^-----BEGIN [A-Z ]*#{kind}-----/)

      raise InvalidArgumentError, "TLS: #{path} holds no #{kind.downcase} in PEM"
    rescue SystemCallError, TypeError, ArgumentError => e
      raise InvalidArgumentError, "TLS: #{e.message}"
    end
  end
end
