/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** The runtime configuration has no such entry. */
public class ConfigNotFoundException extends FilaException {
  private static final long serialVersionUID = 1L;

  ConfigNotFoundException(Failure failure) {
    super(failure);
  }
}
