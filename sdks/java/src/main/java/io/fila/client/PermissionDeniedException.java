/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The broker does not accept the caller, or does not allow the call. */
public class PermissionDeniedException extends FilaException {
  private static final long serialVersionUID = 1L;

  PermissionDeniedException(Failure failure) {
    super(failure);
  }
}
