/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The broker failed, or sent an unexpected answer. */
public class InternalException extends FilaException {
  private static final long serialVersionUID = 1L;

  InternalException(Failure failure) {
    super(failure);
  }
}
