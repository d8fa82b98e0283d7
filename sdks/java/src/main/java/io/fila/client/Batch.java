/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.List;

/** One request on a stream, for several callers. It keeps its number and its messages for ever. */
final class Batch<W extends Waiter<?>, Q> {
  final Q request;
  final List<W> waiters;
  final long sequence;
  final int bytes;

  /** It was sent on a stream that broke, so the broker may have carried it out already. */
  boolean resent;

  /** When it was first sent, by {@link System#nanoTime}. Unless it was resent, when it was last written to a stream. */
  long sentAt;

  Batch(Q request, List<W> waiters, long sequence, int bytes) {
    this.request = request;
    this.waiters = waiters;
    this.sequence = sequence;
    this.bytes = bytes;
  }

  boolean abandoned() {
    return waiters.stream().noneMatch(Waiter::waits);
  }

  void fail(FilaException error) {
    waiters.forEach(waiter -> waiter.fail(error));
  }

  /** The stream that carried it was lost after it may have reached the broker. */
  void lost() {
    resent = true;
    waiters.forEach(waiter -> waiter.repeated = true);
  }
}
