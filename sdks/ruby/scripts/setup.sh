#!/bin/sh
# Installs Debian packages that are missing: sh scripts/setup.sh PACKAGE...
#
# Elsewhere the gems grpc, minitest and rubocop, protoc and grpc_ruby_plugin do the same. Nothing is installed when
# everything is there already, from wherever it came.
set -eu

missing=""
for program in ruby protoc grpc_ruby_plugin rubocop; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
if command -v ruby >/dev/null; then
  for library in grpc google/protobuf google/rpc/status_pb minitest; do
    ruby -e "require '$library'" 2>/dev/null || missing="$missing $library"
  done
fi
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq >/dev/null || true
  if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; then
    exit 0
  fi
fi
echo "ruby SDK: missing:$missing (apt-get install $*)" >&2
exit 1
