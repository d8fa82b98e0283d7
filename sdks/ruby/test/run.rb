# frozen_string_literal: true

# Runs all tests, or those of the files that are named: ruby -Ilib -Itest test/run.rb [FILE...]

require 'minitest'
require 'test_helper'

# Counts, so that a run without tests fails and the number of tests is never written by hand.
class Tally < Minitest::StatisticsReporter
  def report
    super
    passed = count - results.count { |result| !result.skipped? } - skips
    puts "tests: #{passed} passed"
  end

  def passed?
    super && count.positive? && skips.zero?
  end
end

module Minitest
  def self.plugin_tally_init(_options)
    reporter << Tally.new
  end
end
Minitest.extensions << 'tally'

at_exit { FilaServer.stop_shared }
files = ARGV.empty? ? Dir[File.join(__dir__, '{unit,integration}', '*_test.rb')] : ARGV
files.each { |file| require File.expand_path(file) }
exit Minitest.run([])
