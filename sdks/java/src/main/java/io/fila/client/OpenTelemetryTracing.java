/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.EnqueueRequest;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Map;

/** Loaded only when OpenTelemetry is there. */
final class OpenTelemetryTracing implements Tracing {
  private static final String TRACEPARENT = "traceparent";

  @Override
  public EnqueueRequest inject(EnqueueRequest request) {
    if (!Span.current().getSpanContext().isSampled() || request.containsHeaders(TRACEPARENT)) {
      return request;
    }
    EnqueueRequest.Builder traced = request.toBuilder();
    W3CTraceContextPropagator.getInstance().inject(Context.current(), traced, EnqueueRequest.Builder::putHeaders);
    return traced.build();
  }

  @Override
  public void within(Map<String, String> headers, Runnable handler) {
    contextOf(headers).wrap(handler).run();
  }

  static Context contextOf(Map<String, String> headers) {
    return W3CTraceContextPropagator.getInstance().extract(Context.current(), headers, new Headers());
  }

  private static final class Headers implements TextMapGetter<Map<String, String>> {
    @Override
    @SuppressWarnings("deprecation") // abstract in earlier versions of OpenTelemetry
    public Iterable<String> keys(Map<String, String> carrier) {
      return carrier.keySet();
    }

    @Override
    public String get(Map<String, String> carrier, String key) {
      return carrier == null ? null : carrier.get(key);
    }
  }
}
