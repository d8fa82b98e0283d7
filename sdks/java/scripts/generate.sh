#!/bin/sh
# Generates Java code from proto/ into the folder $1. The tools come through Maven, so that nobody installs protoc.
#
# auth.proto is copied and not generated: the SDK has no calls for keys and roles.
# The plugin is older than grpc.version of pom.xml: later releases have no program for Linux. Its code works with newer
# libraries.
set -eu
out=$1
protoc=3.25.9
plugin=1.83.1
cd "$(dirname "$0")/.."
case "$(uname -s)" in Linux) os=linux ;; Darwin) os=osx ;; *) echo "no protoc for $(uname -s)" >&2; exit 1 ;; esac
case "$(uname -m)" in x86_64 | amd64) arch=x86_64 ;; aarch64 | arm64) arch=aarch_64 ;; *) echo "no protoc for $(uname -m)" >&2; exit 1 ;; esac
tools=target/tools
fetch() {
  [ -x "$tools/$2-$3-$os-$arch.exe" ] && return
  mvn -q -B dependency:copy -Dartifact="$1:$2:$3:exe:$os-$arch" -DoutputDirectory="$tools"
  chmod +x "$tools/$2-$3-$os-$arch.exe"
}
fetch com.google.protobuf protoc "$protoc"
fetch io.grpc protoc-gen-grpc-java "$plugin"
# The types of google.protobuf that the files import are in the jar of protobuf-java.
mvn -q -B dependency:unpack -Dartifact="com.google.protobuf:protobuf-java:$protoc:jar" -Dmdep.unpack.includes='**/*.proto' \
  -DoutputDirectory="$PWD/$tools/include"
mkdir -p "$out"
"$tools/protoc-$protoc-$os-$arch.exe" -I proto -I "$tools/include" \
  --plugin=protoc-gen-grpc-java="$tools/protoc-gen-grpc-java-$plugin-$os-$arch.exe" \
  --java_out="$out" --grpc-java_out=@generated=omit:"$out" \
  proto/fila/v1/errors.proto proto/fila/v1/messages.proto proto/fila/v1/service.proto proto/fila/v1/admin.proto
