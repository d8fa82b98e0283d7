# frozen_string_literal: true

require 'test_helper'
require 'open3'
require 'rubygems/package'

# The gem as it is published.
class GemTest < FilaTest
  ROOT = File.expand_path('../..', __dir__)
  HOME = 'https://example.com/fila'

  def test_holds_all_that_the_library_needs_and_no_more
    needed = Dir.glob('{lib,proto}/**/*.{rb,proto}', base: ROOT) + %w[README.md LICENSE .yardopts]

    assert_equal needed.sort, built.contents.sort
  end

  def test_works_without_the_folder_that_it_was_made_from
    Dir.mktmpdir do |folder|
      built.extract_files(folder)
      code = "require 'fila-client'; Fila::Client.open('localhost:1') { puts Fila::VERSION }"
      output, status = Open3.capture2e(RbConfig.ruby, '-I', File.join(folder, 'lib'), '-e', code, chdir: folder)

      assert_predicate status, :success?, output
      assert_equal Fila::VERSION, output.chomp
    end
  end

  def test_says_what_it_is
    spec = built.spec

    assert_equal ['fila-client', Fila::VERSION, 'Apache-2.0'], [spec.name, spec.version.to_s, spec.license]
    assert spec.required_ruby_version.satisfied_by?(Gem::Version.new(RUBY_VERSION))
    assert_equal 'true', spec.metadata['rubygems_mfa_required']
    assert_equal [HOME, HOME], [spec.homepage, spec.metadata['source_code_uri']]
  end

  # Of the ranges that it gives, the tests run with these.
  def test_takes_the_libraries_that_it_is_tested_with
    versions = { 'grpc' => GRPC::VERSION }
    found = built.spec.runtime_dependencies.to_h do |one|
      [one.name, versions.fetch(one.name) { Gem::Specification.find_by_name(one.name).version.to_s }]
    end

    assert_equal %w[google-protobuf googleapis-common-protos-types grpc], found.keys.sort
    built.spec.runtime_dependencies.each do |one|
      assert one.requirement.satisfied_by?(Gem::Version.new(found[one.name])), one.to_s
    end
  end

  private

  def built
    @built ||= Dir.mktmpdir do |folder|
      file = File.join(folder, 'built.gem')
      command = ['gem', 'build', '--silent', '--output', file, 'fila-client.gemspec']
      output, status = Open3.capture2e({ 'FILA_HOME' => HOME }, *command, chdir: ROOT)
      assert_predicate status, :success?, output
      Gem::Package.new(StringIO.new(File.binread(file))).tap(&:spec)
    end
  end
end
