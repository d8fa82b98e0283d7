/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.concurrent.CompletableFuture;

/** One request of a caller on its way through a batch stream. Belongs to the loop, but for the future. */
class Waiter<T> {
  final CompletableFuture<T> future = new CompletableFuture<>();

  /** By {@link System#nanoTime}. */
  final long deadline;

  /** Whether it may have reached the broker. */
  boolean sent;

  /** It was in a batch that was lost on its way, so the broker may have carried it out already. */
  boolean repeated;

  /** How many members in a row have named another one. */
  int hops;

  private Backoff backoff;

  /** The last refusal that is worth another attempt. */
  FilaException trouble;

  Waiter(long deadline) {
    this.deadline = deadline;
  }

  /** Whether somebody still wants the answer: it did not time out and was not cancelled. */
  boolean waits() {
    return !future.isDone();
  }

  void fail(FilaException error) {
    future.completeExceptionally(error);
  }

  long nextWaitMs(FilaException error) {
    trouble = error;
    if (backoff == null) {
      backoff = new Backoff();
    }
    return backoff.nextWaitMs(error.retryAfter().toMillis());
  }
}
