// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

// Package filaotel carries the W3C trace context of OpenTelemetry in the headers of messages. It is a module of its own,
// so that programs without OpenTelemetry do not depend on it.
//
//	client, err := fila.New(address, fila.WithPropagator(filaotel.Propagator{}))
//
// A message that is enqueued inside a span has the header traceparent. On the other side,
// ConsumeMessage.Context(ctx) has the span of the producer as its parent.
package filaotel

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxState bounds tracestate, which travels with every message. A longer one is left out.
const maxState = 512

// Propagator is a fila.Propagator for OpenTelemetry.
type Propagator struct{}

// Inject adds the headers traceparent and tracestate, if there is a sampled span in ctx.
func (Propagator) Inject(ctx context.Context, headers map[string]string) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(headers))
	if len(headers["tracestate"]) > maxState {
		delete(headers, "tracestate")
	}
}

// Extract returns ctx with the span that the headers name as its remote parent.
func (Propagator) Extract(ctx context.Context, headers map[string]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(headers))
}
