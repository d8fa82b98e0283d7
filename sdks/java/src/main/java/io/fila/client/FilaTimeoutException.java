/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** No answer came before the deadline. The request may or may not have been carried out. */
public class FilaTimeoutException extends FilaException {
  private static final long serialVersionUID = 1L;

  FilaTimeoutException(Failure failure) {
    super(failure);
  }
}
