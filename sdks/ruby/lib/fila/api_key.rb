# frozen_string_literal: true

module Fila
  # The API key of a client, sent with every call.
  #
  # A file is read again when it has changed: a key is rotated by replacing the file. While the file holds no key,
  # because it is being written or is away, the last one is sent.
  # @api private
  class ApiKey
    KEY_VARIABLE = 'FILA_API_KEY'
    FILE_VARIABLE = 'FILA_API_KEY_FILE'

    # The key that is given, else that of the environment. A variable that is empty is not set.
    def self.find(text, file, environment = ENV)
      return new(text, file) if text || file

      text, file = environment.values_at(KEY_VARIABLE, FILE_VARIABLE).map { |value| value unless value.to_s.empty? }
      new(text, text ? nil : file)
    end

    def initialize(text, file)
      raise InvalidArgumentError, 'api_key and api_key_file exclude each other' if text && file

      @lock = Mutex.new
      @file = file
      @key = text && checked(text, 'api_key')
      metadata
    end

    # @return [Hash] what a call sends
    def metadata
      key = @lock.synchronize { @file ? from_file : @key }
      key ? { 'authorization' => "Bearer #{key}" } : {}
    end

    # A key must not show up in logs.
    def inspect
      '#<Fila::ApiKey>'
    end

    private

    def from_file
      found = File.stat(@file)
      stamp = [found.mtime, found.size, found.ino]
      return @key if stamp == @stamp

      @key = checked(File.read(@file), @file)
      @stamp = stamp
      @key
    rescue SystemCallError, TypeError, ArgumentError => e
      @key || raise(InvalidArgumentError, "the API key cannot be read: #{e.message}")
    rescue InvalidArgumentError
      @key || raise
    end

    def checked(text, where)
      key = text.is_a?(String) ? text.b.strip : ''
      return key.force_encoding(Encoding::UTF_8) if key.match?(/\A[!-~]+\z/)

      raise InvalidArgumentError, "#{where} holds no API key: one line of printable ASCII without spaces"
    end
  end
end
