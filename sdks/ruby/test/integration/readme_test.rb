# frozen_string_literal: true

require 'test_helper'
require 'open3'

# The quickstart of the README is a program that works.
class ReadmeTest < FilaTest
  README = File.read(File.expand_path('../../README.md', __dir__))

  def test_the_quickstart_works_as_it_is_printed
    code = README[/## Quickstart.*?```ruby\n(.*?)```/m, 1]
    assert_includes code, 'localhost:5555'
    code = code.gsub('localhost:5555', FilaServer.shared.address)
    output, status = Open3.capture2e(RbConfig.ruby, '-I', File.expand_path('../../lib', __dir__), '-e', code)

    assert_predicate status, :success?, output
    assert_equal "acme: an order\n", output
  end

  def test_every_example_is_ruby
    examples = README.scan(/```ruby\n(.*?)```/m).flatten

    assert_operator examples.size, :>, 5
    examples.each { |code| assert RubyVM::InstructionSequence.compile(code) }
  end

  def test_the_methods_that_it_names_exist
    named = README[/## Operate\n\n(.*?)\n\n/m, 1].scan(/`(\w+)`/).flatten.map(&:to_sym)

    assert_operator named.size, :>, 15
    assert_empty named - Fila::Client.public_instance_methods
    fields = README[/A message has (.*)\.$/, 1].scan(/`(\w+)`/).flatten.map(&:to_sym)
    assert_empty fields - Fila::ConsumeMessage.public_instance_methods
  end

  def test_the_table_of_errors_names_every_error
    named = README.scan(/^\| `(\w+Error)`/).flatten
    errors = Fila.constants.grep(/Error\z/).map(&:to_s) - ['Error']

    assert_equal errors.sort, named.sort
  end
end
