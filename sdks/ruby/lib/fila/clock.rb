# frozen_string_literal: true

module Fila
  # Time that never jumps.
  # @api private
  module Clock
    # As good as for ever. gRPC takes no deadline that is much later.
    YEAR = 366 * 86_400

    module_function

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # @param timeout [Numeric] seconds; infinity is a year
    # @return [Float] when they are over
    # @raise [InvalidArgumentError]
    def deadline(timeout)
      return now + [timeout, YEAR].min if timeout.is_a?(Numeric) && timeout.real? && timeout >= 0

      raise InvalidArgumentError, "#{timeout.inspect} is no timeout: seconds, at least 0"
    end
  end
end
