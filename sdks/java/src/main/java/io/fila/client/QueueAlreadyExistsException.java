/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** A queue of that name exists. */
public class QueueAlreadyExistsException extends FilaException {
  private static final long serialVersionUID = 1L;

  QueueAlreadyExistsException(Failure failure) {
    super(failure);
  }
}
