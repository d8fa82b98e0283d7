// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// apiKey is where the key comes from. Its text is never shown.
type apiKey struct {
	mu      sync.Mutex
	path    string
	header  string
	changed time.Time
	size    int64
}

func newAPIKey(key, path string) (*apiKey, error) {
	made := &apiKey{path: path}
	if path == "" {
		header, err := bearer(key)
		made.header = header
		return made, err
	}
	_, err := made.read()
	return made, err
}

// read returns the header that a call sends. When the file cannot be read any more, the last key is sent.
func (k *apiKey) read() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return k.header, nil
	}
	found, err := os.Stat(k.path)
	if err == nil && k.header != "" && found.ModTime().Equal(k.changed) && found.Size() == k.size {
		return k.header, nil
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(k.path)
	}
	var header string
	if err == nil {
		header, err = bearer(string(text))
	}
	if err != nil {
		if k.header == "" {
			return "", invalid("the API key cannot be read: " + err.Error())
		}
		return k.header, nil
	}
	k.header, k.changed, k.size = header, found.ModTime(), found.Size()
	return header, nil
}

func bearer(text string) (string, error) {
	key := strings.TrimSpace(text)
	if key == "" || strings.ContainsFunc(key, func(letter rune) bool { return letter <= ' ' || letter > '~' }) {
		return "", invalid("there is no API key: one line of printable ASCII")
	}
	return "Bearer " + key, nil
}

func (k *apiKey) attach(ctx context.Context) (context.Context, error) {
	header, err := k.read()
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", header), nil
}

// dialOptions send the key with every call. Interceptors, unlike credentials of a call, also work without TLS.
func (k *apiKey) dialOptions() []grpc.DialOption {
	unary := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx, err := k.attach(ctx)
		if err != nil {
			return err
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
	stream := func(ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := k.attach(ctx)
		if err != nil {
			return nil, err
		}
		return open(ctx, description, conn, method, options...)
	}
	return []grpc.DialOption{grpc.WithUnaryInterceptor(unary), grpc.WithStreamInterceptor(stream)}
}
