/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.opentelemetry.context.Context;

/**
 * For programs that use OpenTelemetry. A message that is sent within a sampled span carries the W3C trace context of
 * the
 * span in its header {@code traceparent}, and an observer runs within the context of its message. A program that takes
 * messages itself asks here.
 */
public final class FilaTracing {
  private FilaTracing() {}

  /**
   * The context that a message was sent in, for spans that continue its trace.
   *
   * @param message a delivered message
   * @return the current context with the producer's span, if the message names one
   */
  public static Context contextOf(ConsumeMessage message) {
    return OpenTelemetryTracing.contextOf(message.headers());
  }
}
