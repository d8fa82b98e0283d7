# frozen_string_literal: true

module Fila
  # Texts of the contract are UTF-8. Not every version of google-protobuf checks that, and a request that the broker
  # cannot decode ends a stream that others share.
  # @api private
  module Text
    module_function

    # @return [String] the text in UTF-8, as the broker gives it back
    # @raise [InvalidArgumentError]
    def check(text)
      encoded = text.encode(Encoding::UTF_8) if text.is_a?(String)
      return encoded if encoded&.valid_encoding?

      raise InvalidArgumentError, "#{text.inspect} is no text in UTF-8"
    rescue EncodingError => e
      raise InvalidArgumentError, e.message
    end

    # Checks the texts of a field, which may hold several.
    # @raise [InvalidArgumentError]
    def check_all(value)
      case value
      when String then check(value)
      when Array then value.each { |one| check_all(one) }
      when Hash then value.each { |pair| check_all(pair) }
      end
    end

    # A text for people, such as that of an error, may hold anything: bytes that a parser complains about, or that came
    # from the wire without an encoding.
    def cleaned(text)
      text = text.to_s
      text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    rescue EncodingError
      text.b.force_encoding(Encoding::UTF_8).scrub
    end
  end
end
