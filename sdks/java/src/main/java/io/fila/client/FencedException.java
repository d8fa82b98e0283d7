/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** A later start of the same producer or reader has taken over. */
public class FencedException extends FailedPreconditionException {
  private static final long serialVersionUID = 1L;

  FencedException(Failure failure) {
    super(failure);
  }
}
