/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.Optional;

/** What became of one message. */
public final class EnqueueResult {
  private final String id;
  private final boolean duplicate;
  private final FilaException error;

  EnqueueResult(String id, boolean duplicate, FilaException error) {
    this.id = id;
    this.duplicate = duplicate;
    this.error = error;
  }

  /**
   * The id that the broker gave the message, or the id of the first one with the same dedup key.
   *
   * @return the id; empty if the message was refused
   */
  public String id() {
    return id;
  }

  /**
   * Whether an earlier message has the same dedup key. Nothing was enqueued now then.
   *
   * @return true for a duplicate
   */
  public boolean duplicate() {
    return duplicate;
  }

  /**
   * Why the message was not enqueued. Only results of {@link FilaClient#enqueueMany} have one: a single enqueue throws
   * it.
   *
   * @return the error, if the message was refused
   */
  public Optional<FilaException> error() {
    return Optional.ofNullable(error);
  }

  @Override
  public String toString() {
    return error == null ? "EnqueueResult[" + id + (duplicate ? ", duplicate]" : "]") : "EnqueueResult[" + error + "]";
  }
}
