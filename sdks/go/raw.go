// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

const codeUnauthenticated = codes.Unauthenticated

// rawCodec passes bytes through, so that a batch is encoded once, however often it is sent.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	data, ok := message.(mem.BufferSlice)
	if !ok {
		return nil, fmt.Errorf("cannot send %T", message)
	}
	return data, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	into, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive %T", message)
	}
	*into = data.Materialize()
	return nil
}

// asError translates the end of a stream: of the broker, of the transport, or of the SDK itself.
func asError(err error) (failed *Error, lost bool) {
	if errors.As(err, &failed) {
		return failed, failed.Retryable
	}
	return fromStatus(err)
}

// trailerOf is what the broker has said at the end of a stream, which has ended with err.
func trailerOf(stream grpc.ClientStream, err error) metadata.MD {
	if stream == nil || errors.As(err, new(*Error)) { // it was not the broker that ended it
		return nil
	}
	return stream.Trailer()
}
