/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** Backpressure: the broker takes no more now, and did not until the deadline. */
public class OverloadedException extends FilaException {
  private static final long serialVersionUID = 1L;

  OverloadedException(Failure failure) {
    super(failure);
  }
}
