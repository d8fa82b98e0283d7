# frozen_string_literal: true

module Fila
  # Where to connect: the current address, the next one when it is lost, and the one that a member of a cluster named.
  # @api private
  class Addresses
    # How often in a row a client follows the members that others name.
    MAX_HOPS = 4
    # A name or an address of IPv4, or one of IPv6 in brackets; a port. No scheme: gRPC knows many.
    FORM = /\A(?:\[[0-9A-Za-z:.%]+\]|[0-9A-Za-z._-]+):([0-9]{1,5})\z/

    # @return [Boolean]
    def self.valid?(address)
      address.b[FORM, 1].to_i.between?(1, 65_535)
    end

    def initialize(given)
      @all = (given.is_a?(String) ? given.scrub.split(',') : Array(given)).map { |one| one.to_s.scrub.strip }
      bad = @all.find { |one| !self.class.valid?(one) }
      raise InvalidArgumentError, "#{bad.inspect} is no address: host:port" if bad
      raise InvalidArgumentError, 'there is no address' if @all.empty?

      @lock = Mutex.new
      @index = 0
      @named = nil
    end

    def current
      @lock.synchronize { @named || @all[@index] }
    end

    # The address was lost: the next one is current, unless somebody has moved on already.
    def leave(address)
      @lock.synchronize do
        if @named
          @named = nil if @named == address
        elsif @all[@index] == address
          @index = (@index + 1) % @all.size
        end
      end
    end

    # A member of the cluster has named another one. What is no address is not followed.
    def follow(owner)
      @lock.synchronize { @named = owner } if self.class.valid?(owner)
    end
  end
end
