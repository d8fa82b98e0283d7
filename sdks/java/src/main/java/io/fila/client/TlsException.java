/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** There is no secure connection to the broker. The text says why. */
public class TlsException extends FilaException {
  private static final long serialVersionUID = 1L;

  TlsException(Failure failure) {
    super(failure);
  }
}
