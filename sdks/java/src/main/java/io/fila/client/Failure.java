/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

/** What an exception says: made once, so that the constructors of all exceptions are the same. */
record Failure(
    String kind, String message, boolean retryable, long retryAfterMs, String owner, Throwable cause) {

  /** Of the SDK itself, not of the broker. */
  static Failure local(String kind, String message, Throwable cause) {
    return new Failure(kind, message, false, 0, "", cause);
  }
}
