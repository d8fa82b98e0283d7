# frozen_string_literal: true

# Generates the Ruby code of the contract: ruby scripts/generate.rb PROTO_DIR OUT_DIR
#
# Older protoc writes the schema in a Ruby DSL that google-protobuf 4 no longer has. Every google-protobuf since 3.15
# takes a serialized descriptor, as newer protoc writes it. So the DSL is replaced by the descriptor, and the code loads
# with all of them. The output of a newer protoc is left as it is.

require 'open3'
require 'tmpdir'
require 'google/protobuf'
require 'google/protobuf/descriptor_pb'

POOL = 'Google::Protobuf::DescriptorPool.generated_pool'

proto_dir, out_dir = ARGV
files = Dir.chdir(proto_dir) { Dir['fila/v1/*.proto'] }
protoc = ENV.fetch('PROTOC', 'protoc')
plugin = ENV.fetch('GRPC_RUBY_PLUGIN') { Open3.capture2('which', 'grpc_ruby_plugin').first.strip }

Dir.mktmpdir do |scratch|
  set = File.join(scratch, 'set.bin')
  done = system(protoc, "-I#{proto_dir}", "--ruby_out=#{out_dir}", "--grpc_out=#{out_dir}",
                "--plugin=protoc-gen-grpc=#{plugin}", "--descriptor_set_out=#{set}", *files)
  abort 'protoc failed' unless done

  Google::Protobuf::FileDescriptorSet.decode(File.binread(set)).file.each do |file|
    path = File.join(out_dir, file.name.sub(/\.proto\z/, '_pb.rb'))
    code = File.read(path)
    data = Google::Protobuf::FileDescriptorProto.encode(file).dump
    code = code.sub(/^#{POOL}\.build do\n.*?^end\n/mo) do
      "descriptor_data = #{data}\n\n#{POOL}.add_serialized_file(descriptor_data)\n"
    end
    File.write(path, "# frozen_string_literal: true\n#{code}")
  end
end
