/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The queue does not exist. */
public class QueueNotFoundException extends FilaException {
  private static final long serialVersionUID = 1L;

  QueueNotFoundException(Failure failure) {
    super(failure);
  }
}
