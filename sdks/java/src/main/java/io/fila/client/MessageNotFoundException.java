/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/**
 * No message is held under that lease: it ended, the message was settled before, or it never existed.
 */
public class MessageNotFoundException extends FilaException {
  private static final long serialVersionUID = 1L;

  MessageNotFoundException(Failure failure) {
    super(failure);
  }
}
