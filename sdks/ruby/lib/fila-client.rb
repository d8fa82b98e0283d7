# frozen_string_literal: true

# The gem has the name of its package; the library has the name of its module.
require 'fila'
