/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Which batch goes onto the wire next. Pure: no stream, no clock.
 *
 * <ul>
 *   <li>Batches leave in the order in which they were made and are answered in that order.
 *   <li>At most eight are in flight, and only two while the last one is small: requests that arrive meanwhile then
 *       travel as one batch. Nothing follows a small batch of eight requests or more: two halves would take turns for
 *       ever, and each costs the broker nearly as much as the whole.
 *   <li>After a lost stream, the batches in flight go first onto the next one, in the same order, so that numbers
 *       never go backwards. One that nobody waits for is not sent again, and its number is never used again. Neither is
 *       one that the broker may not know any more: its callers are told.
 *   <li>A batch that may have been carried out is sent again alone. If the broker has no time for it, it has to come
 *       once more under its number, and that must happen before a higher number gets through.
 *   <li>A request that ends the stream by a refusal is known only if it was alone in flight. So after a refusal
 *       batches are sent one at a time, until one is refused alone.
 * </ul>
 */
final class SendWindow<W extends Waiter<?>, Q> {
  static final int WINDOW = 8;
  static final int SMALL_WINDOW = 2;
  static final int SMALL_BYTES = 64 * 1024;

  /** So many requests in a small batch are worth waiting for. */
  static final int SOME = 8;

  private final Deque<Batch<W, Q>> inFlight = new ArrayDeque<>();
  private final Deque<Batch<W, Q>> resend = new ArrayDeque<>();
  private boolean probing;

  boolean isEmpty() {
    return inFlight.isEmpty() && resend.isEmpty();
  }

  /** How many requests wait for their answers. */
  int requests() {
    return count(inFlight) + count(resend);
  }

  /** The batch to write now: one to send again, else a new one. Null when there is none, or no room. */
  Batch<W, Q> next(long now, Supplier<Batch<W, Q>> make) {
    if (isEmpty()) {
      probing = false;
    }
    dropAbandoned();
    if (inFlight.size() >= room()) {
      return null;
    }
    Batch<W, Q> batch = resend.isEmpty() ? make.get() : resend.pollFirst();
    if (batch != null) {
      if (!batch.resent) {
        batch.sentAt = now;
      }
      inFlight.addLast(batch);
    }
    return batch;
  }

  /** The batch that the next answer belongs to; null when no batch is in flight. */
  Batch<W, Q> answered() {
    return inFlight.pollFirst();
  }

  /** The stream was lost: send again what was in flight. */
  void lost(boolean maybeSent) {
    for (Iterator<Batch<W, Q>> last = inFlight.descendingIterator(); last.hasNext(); ) {
      Batch<W, Q> batch = last.next();
      if (maybeSent) {
        batch.lost();
      }
      resend.addFirst(batch);
    }
    inFlight.clear();
  }

  /** Fails the batches of earlier streams that were first sent more than so many nanoseconds ago. */
  void endOlder(long now, long nanos, Supplier<FilaException> error) {
    for (Batch<W, Q> batch : resend) {
      if (batch.resent && now - batch.sentAt > nanos) {
        batch.fail(error.get());
      }
    }
    dropAbandoned();
  }

  /** Puts an answered batch back in front: it is to be sent again under its number. */
  void again(Batch<W, Q> batch) {
    resend.addFirst(batch);
  }

  /** The broker ended the stream with a refusal. Returns the batch to blame, if that is certain. */
  Batch<W, Q> refused() {
    Batch<W, Q> blamed = inFlight.size() == 1 ? inFlight.pollFirst() : null;
    probing = probing || !inFlight.isEmpty();
    lost(true);
    return blamed;
  }

  void forEachInFlight(Consumer<W> action) {
    inFlight.forEach(batch -> batch.waiters.forEach(action));
  }

  void forEach(Consumer<W> action) {
    forEachInFlight(action);
    resend.forEach(batch -> batch.waiters.forEach(action));
  }

  void clear() {
    inFlight.clear();
    resend.clear();
  }

  private int count(Deque<Batch<W, Q>> batches) {
    int found = 0;
    for (Batch<W, Q> batch : batches) {
      found += batch.waiters.size();
    }
    return found;
  }

  private int room() {
    Batch<W, Q> last = inFlight.peekLast();
    Batch<W, Q> next = resend.peekFirst();
    if (probing || (last != null && last.resent) || (next != null && next.resent)) {
      return 1;
    }
    if (last == null || last.bytes >= SMALL_BYTES) {
      return WINDOW;
    }
    return last.waiters.size() < SOME ? SMALL_WINDOW : 1;
  }

  private void dropAbandoned() {
    while (!resend.isEmpty() && resend.peekFirst().abandoned()) {
      resend.pollFirst();
    }
  }
}
