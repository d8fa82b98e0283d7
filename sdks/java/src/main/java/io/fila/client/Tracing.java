/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.EnqueueRequest;
import java.util.Map;

/** The trace context of messages, for programs that use OpenTelemetry; nothing at all for others. */
interface Tracing {
  /** The request, with the context of the current span in its headers unless it has one. */
  EnqueueRequest inject(EnqueueRequest request);

  /** Runs what handles a message within the context of its producer. */
  void within(Map<String, String> headers, Runnable handler);

  static Tracing find() {
    try {
      Class.forName("io.opentelemetry.api.trace.Span", false, Tracing.class.getClassLoader());
      return new OpenTelemetryTracing();
    } catch (ClassNotFoundException | LinkageError none) {
      return new None();
    }
  }

  /** Without OpenTelemetry. */
  final class None implements Tracing {
    @Override
    public EnqueueRequest inject(EnqueueRequest request) {
      return request;
    }

    @Override
    public void within(Map<String, String> headers, Runnable handler) {
      handler.run();
    }
  }
}
