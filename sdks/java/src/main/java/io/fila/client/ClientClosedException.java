/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The client was closed. */
public class ClientClosedException extends FilaException {
  private static final long serialVersionUID = 1L;

  ClientClosedException(Failure failure) {
    super(failure);
  }
}
