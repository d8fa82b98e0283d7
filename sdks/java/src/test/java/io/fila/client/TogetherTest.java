/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.fila.v1.EnqueueBatchRequest;
import io.fila.v1.EnqueueBatchResponse;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Calls that keep coming travel in one batch. The broker answers only when a test says so. */
class TogetherTest {
  private static final OutgoingMessage EMPTY = OutgoingMessage.to("q").build();

  private record Sent(EnqueueBatchRequest request, StreamObserver<EnqueueBatchResponse> out) {}

  private final BlockingQueue<Sent> sent = new LinkedBlockingQueue<>();
  private final AtomicInteger answered = new AtomicInteger();
  private FakeBroker broker;
  private FilaClient client;

  /** Futures are completed on the loop: no caller is slower than the others. */
  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    broker.enqueue = (request, out) -> sent.add(new Sent(request, out));
    client = broker.builder().executor(Runnable::run).build();
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
  }

  /** Calls, and again when it has its answer. */
  private void call(AtomicInteger left) {
    if (left.getAndDecrement() > 0) {
      client
          .enqueueAsync(EMPTY)
          .thenRun(
              () -> {
                call(left);
                answered.incrementAndGet();
              });
    }
  }

  /** Twenty callers, of which the first is alone under way. */
  private void twentyCall(AtomicInteger left) throws InterruptedException {
    call(left);
    sent.add(next());
    for (int caller = 1; caller < 20; caller++) {
      call(caller < 10 ? left : new AtomicInteger(Integer.MAX_VALUE));
    }
  }

  private Sent next() throws InterruptedException {
    Sent next = sent.poll(10, TimeUnit.SECONDS);
    assertNotNull(next, "nothing was sent");
    return next;
  }

  /** Answers one batch after the other, until there is one of so many messages. */
  private Sent answerUntil(int messages) throws InterruptedException {
    List<Integer> sizes = new ArrayList<>();
    while (sizes.size() < 20) {
      Sent batch = next();
      if (batch.request.getMessagesCount() == messages) {
        return batch;
      }
      sizes.add(batch.request.getMessagesCount());
      answer(batch);
    }
    throw new AssertionError("no batch of " + messages + ": " + sizes);
  }

  private void answer(Sent batch) {
    int due = answered.get() + batch.request.getMessagesCount();
    batch.out.onNext(broker.enqueued(batch.request));
    while (answered.get() < due) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void callersThatKeepComingTravelTogetherInTheEnd() throws Exception {
    twentyCall(new AtomicInteger(Integer.MAX_VALUE));
    answerUntil(20);
  }

  @Test
  void callersThatDoNotComeBackHoldNobodyUp() throws Exception {
    AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
    twentyCall(left);
    Sent whole = answerUntil(20);
    left.set(0);
    answer(whole);
    answerUntil(10);
  }
}
