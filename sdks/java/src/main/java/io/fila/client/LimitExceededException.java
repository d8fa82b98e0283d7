/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** Something is larger than its limit, or there are as many as there may be. */
public class LimitExceededException extends FilaException {
  private static final long serialVersionUID = 1L;

  LimitExceededException(Failure failure) {
    super(failure);
  }
}
