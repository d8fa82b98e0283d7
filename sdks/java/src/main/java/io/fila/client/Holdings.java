/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What one consumer was delivered and nobody has settled: prefetched, or held by the application. Its leases are
 * extended every third of the visibility timeout, also after the consumer has stopped: the application may finish.
 */
final class Holdings {
  private static final int TIMES = 3;

  /** However short the visibility timeout is. */
  private static final long MIN_TURN_MS = 10;

  /** As many messages as a request may have. */
  private static final int MAX_IDS = 5000;

  private final Loop loop;
  private final Settler settler;
  private final String queue;
  private final Map<String, Set<String>> idsByLease = new HashMap<>();
  private long visibilityMs;
  private long plan;
  private boolean closed;
  private volatile boolean over;

  Holdings(Loop loop, Settler settler, String queue) {
    this.loop = loop;
    this.settler = settler;
    this.queue = queue;
  }

  String queue() {
    return queue;
  }

  synchronized void add(ConsumeMessage message) {
    idsByLease.computeIfAbsent(message.leaseId(), lease -> new HashSet<>()).add(message.id());
  }

  /** It is about to be settled, or was lost. Without a lease id: under whichever lease it is. */
  synchronized void forget(String leaseId, String id) {
    if (leaseId.isEmpty()) {
      idsByLease.values().forEach(ids -> ids.remove(id));
      idsByLease.values().removeIf(Set::isEmpty);
      return;
    }
    Set<String> ids = idsByLease.get(leaseId);
    if (ids != null && ids.remove(id) && ids.isEmpty()) {
      idsByLease.remove(leaseId);
    }
  }

  synchronized boolean isEmpty() {
    return idsByLease.isEmpty();
  }

  /** The broker has told the visibility timeout. On the loop. */
  void visibility(long millis) {
    if (millis > 0 && millis != visibilityMs) {
      visibilityMs = millis;
      plan++;
      extendLater(plan);
    }
  }

  /** Its consumer has ended: nothing is added any more. */
  void over() {
    over = true;
  }

  boolean isOver() {
    return over;
  }

  /** On the loop. */
  void close() {
    closed = true;
  }

  private void extendLater(long planned) {
    loop.schedule(
        () -> {
          if (!closed && planned == plan && !(over && isEmpty())) {
            extend();
            extendLater(planned);
          }
        },
        Math.max(MIN_TURN_MS, visibilityMs / TIMES));
  }

  private void extend() {
    long deadline = Core.deadline(Duration.ofMillis(visibilityMs));
    held()
        .forEach(
            (lease, ids) -> {
              for (int from = 0; from < ids.size(); from += MAX_IDS) {
                extend(lease, ids.subList(from, Math.min(ids.size(), from + MAX_IDS)), deadline);
              }
            });
  }

  private void extend(String lease, List<String> ids, long deadline) {
    Settle extension = new Settle(Settle.Action.EXTEND, queue, lease, ids, "", 0, deadline);
    extension.future.whenComplete(
        (failed, error) -> {
          if (failed != null) {
            failed.forEach((id, refusal) -> forgetIfGone(lease, id, refusal));
          } else {
            ids.forEach(id -> forgetIfGone(lease, id, error));
          }
        });
    settler.submit(extension);
  }

  private synchronized Map<String, List<String>> held() {
    Map<String, List<String>> held = new HashMap<>();
    idsByLease.forEach((lease, ids) -> held.put(lease, new ArrayList<>(ids)));
    return held;
  }

  /** Another error is no news: the next turn tries again, and what has expired by then is refused. */
  private void forgetIfGone(String leaseId, String id, Throwable error) {
    if (error instanceof MessageNotFoundException || error instanceof QueueNotFoundException) {
      forget(leaseId, id);
    }
  }

  void forgetAll(Collection<ConsumeMessage> messages) {
    messages.forEach(message -> forget(message.leaseId(), message.id()));
  }
}
