#!/bin/sh
# Generates TypeScript from proto/ into the folder that is the first argument.
#
# Maps are `Map`s: in an object a header named __proto__ would be lost. Files do not name the version of protoc, so any
# will do.
set -eu
mkdir -p "$1"
protoc --plugin=protoc-gen-ts_proto=node_modules/.bin/protoc-gen-ts_proto --ts_proto_out="$1" \
  --ts_proto_opt=env=node,esModuleInterop=true,forceLong=number,importSuffix=.js,outputServices=grpc-js \
  --ts_proto_opt=outputJsonMethods=false,unrecognizedEnum=false,removeEnumPrefix=false,useOptionals=messages \
  --ts_proto_opt=useMapType=true,annotateFilesWithVersion=false \
  -I proto fila/v1/service.proto fila/v1/admin.proto fila/v1/messages.proto fila/v1/errors.proto
# Generated code throws when a number is above 2^53, such as the epoch of a group. That must not fail a whole call: the
# number is rounded instead.
sed -i -e '/^  if (num [<>] globalThis.Number.M[AI][XN]_SAFE_INTEGER) {$/,/^  }$/d' "$1"/fila/v1/*.ts
