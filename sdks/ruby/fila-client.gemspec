# frozen_string_literal: true

require_relative 'lib/fila/version'

Gem::Specification.new do |spec|
  spec.name = 'fila-client'
  spec.version = Fila::VERSION
  spec.authors = ['Fila contributors']
  spec.summary = 'Client of the Fila message broker'
  spec.description = 'Enqueue, consume and settle messages of Fila, a durable message broker with fair scheduling.'
  spec.license = 'Apache-2.0'
  spec.required_ruby_version = '>= 3.0'
  spec.files = Dir.glob(['lib/**/*.rb', 'proto/**/*.proto', 'README.md', 'LICENSE', '.yardopts'], base: __dir__).sort
  spec.require_paths = ['lib']
  spec.extra_rdoc_files = ['README.md', 'LICENSE']
  spec.metadata = { 'rubygems_mfa_required' => 'true' }

  # Given at the release: the address of the repository.
  if (home = ENV.fetch('FILA_HOME', nil))
    spec.homepage = home
    spec.metadata.update('source_code_uri' => home, 'bug_tracker_uri' => "#{home}/issues",
                         'changelog_uri' => "#{home}/releases")
  end

  spec.add_dependency 'googleapis-common-protos-types', '>= 1.0', '< 2'
  spec.add_dependency 'google-protobuf', '>= 3.21', '< 5'
  spec.add_dependency 'grpc', '>= 1.51', '< 2'
end
