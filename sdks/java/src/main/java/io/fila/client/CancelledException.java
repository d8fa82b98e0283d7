/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The thread that waited was interrupted. The request may or may not have been carried out. */
public class CancelledException extends FilaException {
  private static final long serialVersionUID = 1L;

  CancelledException(Failure failure) {
    super(failure);
  }
}
