/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SendWindowTest {
  private final SendWindow<Waiter<String>, String> window = new SendWindow<>();
  private final Deque<Batch<Waiter<String>, String>> waiting = new ArrayDeque<>();
  private long sequence;

  private Batch<Waiter<String>, String> add(int bytes) {
    return add(1, bytes);
  }

  private Batch<Waiter<String>, String> add(int requests, int bytes) {
    List<Waiter<String>> waiters = Stream.generate(() -> new Waiter<String>(0)).limit(requests).toList();
    Batch<Waiter<String>, String> made = new Batch<>("", waiters, ++sequence, bytes);
    waiting.add(made);
    return made;
  }

  private Batch<Waiter<String>, String> next() {
    return window.next(0, waiting::poll);
  }

  @Test
  void onlyTwoSmallBatchesAreInFlight() {
    Batch<Waiter<String>, String> first = add(1);
    add(1);
    add(1);
    assertSame(first, next());
    assertEquals(2, next().sequence);
    assertNull(next());
    assertSame(first, window.answered());
    assertEquals(3, next().sequence);
  }

  @Test
  void nothingFollowsASmallBatchOfSomeRequests() {
    add(SendWindow.SOME - 1, 1);
    add(SendWindow.SOME, 1);
    add(1, 1);
    assertEquals(1, next().sequence);
    assertEquals(2, next().sequence);
    assertEquals(2 * SendWindow.SOME - 1, window.requests());
    window.answered();
    assertNull(next());
    window.answered();
    assertEquals(3, next().sequence);
  }

  @Test
  void eightLargeBatchesAreInFlight() {
    for (int each = 0; each < 9; each++) {
      add(SendWindow.SOME, SendWindow.SMALL_BYTES);
    }
    for (int each = 0; each < 8; each++) {
      next();
    }
    assertNull(next());
  }

  @Test
  void lostBatchesComeAgainInOrderOneAtATime() {
    Batch<Waiter<String>, String> first = add(SendWindow.SMALL_BYTES);
    Batch<Waiter<String>, String> second = add(SendWindow.SMALL_BYTES);
    next();
    next();
    window.lost(true);
    assertTrue(first.resent && first.waiters.get(0).repeated);
    assertSame(first, next());
    assertNull(next());
    window.answered();
    assertSame(second, next());
  }

  @Test
  void whatNeverLeftIsNotMarkedAsRepeated() {
    Batch<Waiter<String>, String> first = add(1);
    next();
    window.lost(false);
    assertTrue(!first.resent && !first.waiters.get(0).repeated);
    assertSame(first, next());
  }

  @Test
  void aBatchThatNobodyWaitsForIsNotSentAgain() {
    Batch<Waiter<String>, String> first = add(SendWindow.SMALL_BYTES);
    Batch<Waiter<String>, String> second = add(SendWindow.SMALL_BYTES);
    next();
    next();
    window.lost(true);
    first.waiters.get(0).future.cancel(true);
    assertSame(second, next());
  }

  @Test
  void aRefusedStreamIsBlamedOnABatchThatWasAlone() {
    Batch<Waiter<String>, String> first = add(SendWindow.SMALL_BYTES);
    add(SendWindow.SMALL_BYTES);
    next();
    next();
    assertNull(window.refused());
    assertSame(first, next());
    assertNull(next());
    assertSame(first, window.refused());
  }

  @Test
  void whatTheBrokerMayHaveForgottenFails() {
    Batch<Waiter<String>, String> first = add(1);
    window.next(10, waiting::poll);
    window.lost(true);
    window.next(15, waiting::poll); // which does not make it younger
    window.lost(true);
    window.endOlder(15, 5, Errors::forgotten);
    assertTrue(first.waiters.get(0).waits());
    window.endOlder(16, 5, Errors::forgotten);
    assertTrue(!first.waiters.get(0).waits() && window.isEmpty());
  }

  @Test
  void whatNeverLeftIsAsNewHoweverLongItWaits() {
    Batch<Waiter<String>, String> first = add(1);
    window.next(10, waiting::poll);
    window.lost(false);
    window.endOlder(100, 5, Errors::forgotten);
    assertTrue(first.waiters.get(0).waits());
    window.next(100, waiting::poll);
    window.lost(true);
    window.endOlder(105, 5, Errors::forgotten);
    assertTrue(first.waiters.get(0).waits());
  }
}
