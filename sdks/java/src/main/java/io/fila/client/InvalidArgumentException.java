/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** An argument is not valid. */
public class InvalidArgumentException extends FilaException {
  private static final long serialVersionUID = 1L;

  InvalidArgumentException(Failure failure) {
    super(failure);
  }
}
