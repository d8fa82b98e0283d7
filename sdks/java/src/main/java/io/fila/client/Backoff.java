/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.concurrent.ThreadLocalRandom;

/** Doubles from 20 ms to 1 s. Jitter keeps clients from coming back at the same moment. */
final class Backoff {
  private static final long FIRST_MS = 20;
  private static final long MOST_MS = 1000;

  /** Whatever a broker asks for, a stream is tried again after this time. */
  private static final long MOST_HELD_MS = 60_000;

  private long nextMs = FIRST_MS;

  void reset() {
    nextMs = FIRST_MS;
  }

  /** As {@link #nextWaitMs}, for what has no deadline. */
  long nextHoldMs(long leastMs) {
    return nextWaitMs(Math.min(leastMs, MOST_HELD_MS));
  }

  /** How long to wait now, and never less than the broker asks for. */
  long nextWaitMs(long leastMs) {
    long limit = nextMs;
    nextMs = Math.min(MOST_MS, limit * 2);
    long jittered = ThreadLocalRandom.current().nextLong(limit / 2, limit + 1);
    return Math.max(leastMs, jittered);
  }
}
