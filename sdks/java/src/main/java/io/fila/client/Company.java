/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.concurrent.TimeUnit;

/**
 * Whether a small batch should wait for more callers. Pure: no stream, no clock.
 *
 * <p>Callers that were answered together come back one after the other. A batch that leaves with the first of them
 * leaves the others to the next one: from then on two batches share the callers, and each costs as much as one would.
 * So a batch waits until as many callers are there as there were lately.
 *
 * <ul>
 *   <li>It waits only after an answer, and only while callers keep coming: those that do not come are not waited for
 *       again.
 *   <li>A caller that is alone never waits.
 * </ul>
 */
final class Company {
  /** More are a batch that is large enough. */
  static final int MOST = 256;

  /** Nobody else comes if nobody came for so long. */
  static final long QUIET_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  /** The longest time in all. */
  static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private int expected;
  private int seen;
  private long answeredAt;
  private long cameAt;

  /** Requests were answered: their callers may come back. */
  void answered(long now) {
    answeredAt = now;
    cameAt = now;
    seen = 0;
  }

  /**
   * Whether to wait.
   *
   * @param gathered the requests that wait to be sent
   * @param inFlight the requests that wait for their answers
   */
  boolean isComing(int gathered, int inFlight, long now) {
    int here = Math.min(gathered + inFlight, MOST);
    if (gathered > seen) {
      cameAt = now;
    }
    seen = gathered;
    if (inFlight > 0) {
      expected = Math.max(expected, here);
    } else if (gathered > 0) {
      if (here < expected && now - cameAt <= QUIET_NANOS && now - answeredAt <= LONGEST_NANOS) {
        return true;
      }
      expected = here;
    }
    return false;
  }

  /** How many more callers a batch waits for. */
  int missing(int gathered) {
    return expected - gathered;
  }
}
