// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package filaotel

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func span(t *testing.T, flags trace.TraceFlags, state string) context.Context {
	t.Helper()
	parsed, err := trace.ParseTraceState(state)
	if err != nil {
		t.Fatal(err)
	}
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags, TraceState: parsed,
	}))
}

func TestTraceContextTravelsInHeaders(t *testing.T) {
	ctx := span(t, trace.FlagsSampled, "vendor=value")
	headers := map[string]string{}
	Propagator{}.Inject(ctx, headers)
	if headers["traceparent"] != "00-01000000000000000000000000000000-0200000000000000-01" || headers["tracestate"] != "vendor=value" {
		t.Errorf("%v", headers)
	}
	got := trace.SpanContextFromContext(Propagator{}.Extract(t.Context(), headers))
	if got.TraceID() != (trace.TraceID{1}) || got.SpanID() != (trace.SpanID{2}) || !got.IsRemote() {
		t.Errorf("%v", got)
	}
}

func TestNothingIsAddedWithoutASampledSpan(t *testing.T) {
	for _, ctx := range []context.Context{t.Context(), span(t, 0, "")} {
		headers := map[string]string{}
		if (Propagator{}).Inject(ctx, headers); len(headers) != 0 {
			t.Errorf("%v", headers)
		}
	}
}

func TestLongStateIsLeftOut(t *testing.T) {
	long := "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("z", 250)
	headers := map[string]string{}
	Propagator{}.Inject(span(t, trace.FlagsSampled, long), headers)
	if headers["traceparent"] == "" || headers["tracestate"] != "" {
		t.Errorf("%v", headers)
	}
}
