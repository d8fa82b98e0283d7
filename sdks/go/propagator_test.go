// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila_test

import (
	"context"
	"testing"

	fila "github.com/fila-dev/fila-go"
)

type spanKey struct{}

// spans is a propagator whose trace context is one text.
type spans struct{}

func (spans) Inject(ctx context.Context, headers map[string]string) {
	if span, ok := ctx.Value(spanKey{}).(string); ok {
		headers["traceparent"] = span
	}
}

func (spans) Extract(ctx context.Context, headers map[string]string) context.Context {
	return context.WithValue(ctx, spanKey{}, headers["traceparent"])
}

func TestTraceContextTravelsWithMessages(t *testing.T) {
	c := client(t, server(t), fila.WithPropagator(spans{}))
	name := queue(t, c, nil)
	ctx := context.WithValue(deadline(t), spanKey{}, "span-1")
	headers := map[string]string{"a": "b"}
	if _, err := c.Enqueue(ctx, name, headers, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enqueue(ctx, name, map[string]string{"traceparent": "mine"}, nil); err != nil {
		t.Fatal(err)
	}
	if len(headers) != 1 {
		t.Error("the headers of the caller were changed")
	}
	messages, err := c.Consume(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"span-1", "mine"} {
		message := receive(t, messages)
		if got := message.Context(t.Context()).Value(spanKey{}); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
