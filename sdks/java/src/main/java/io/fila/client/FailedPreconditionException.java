/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The request is valid, but not in the present state. */
public class FailedPreconditionException extends FilaException {
  private static final long serialVersionUID = 1L;

  FailedPreconditionException(Failure failure) {
    super(failure);
  }
}
