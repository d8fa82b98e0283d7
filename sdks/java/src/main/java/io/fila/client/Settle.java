/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.List;
import java.util.Map;

/** What one caller does with messages of one queue that are held under one lease. The answer has what failed, by id. */
final class Settle extends Waiter<Map<String, FilaException>> {
  private static final int OVERHEAD_BYTES = 32;

  /** Of a char. */
  private static final int MAX_UTF8_BYTES = 3;

  /** What is done. */
  enum Action {
    ACK,
    NACK,
    RELEASE,
    REJECT,
    EXTEND
  }

  final Action action;
  final String queue;
  final String leaseId;
  final List<String> ids;
  final String error;

  /** The delay of a nack or a release, or the length of an extension. */
  final long millis;

  /** About how many it takes in a request; rather more. */
  final long bytes;

  Settle(Action action, String queue, String leaseId, List<String> ids, String error, long millis, long deadline) {
    super(deadline);
    this.action = action;
    this.queue = queue;
    this.leaseId = leaseId;
    this.ids = ids;
    this.error = error;
    this.millis = millis;
    long texts = queue.length() + leaseId.length() + error.length();
    this.bytes = ids.stream().mapToLong(id -> OVERHEAD_BYTES + MAX_UTF8_BYTES * (texts + id.length())).sum();
  }
}
