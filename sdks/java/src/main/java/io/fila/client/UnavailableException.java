/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/**
 * No broker could be reached before the deadline, or it was shutting down. An enqueue or a settlement
 * that fails so was never sent.
 */
public class UnavailableException extends FilaException {
  private static final long serialVersionUID = 1L;

  UnavailableException(Failure failure) {
    super(failure);
  }
}
