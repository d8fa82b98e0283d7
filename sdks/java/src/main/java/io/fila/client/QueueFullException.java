/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The queue holds as much as it may, and did until the deadline. */
public class QueueFullException extends OverloadedException {
  private static final long serialVersionUID = 1L;

  QueueFullException(Failure failure) {
    super(failure);
  }
}
