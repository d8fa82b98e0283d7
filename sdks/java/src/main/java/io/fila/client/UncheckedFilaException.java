/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.Objects;

/** Carries a {@link FilaException} through an iterator, whose methods declare no checked exceptions. */
public class UncheckedFilaException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  UncheckedFilaException(FilaException cause) {
    super(cause.getMessage(), Objects.requireNonNull(cause));
  }

  /**
   * The error.
   *
   * @return never null
   */
  @Override
  public synchronized FilaException getCause() {
    return (FilaException) super.getCause();
  }
}
