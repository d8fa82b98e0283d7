/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.fila.v1.EnqueueBatchRequest;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Calls that keep coming travel in one batch. The broker answers only when a test says so. */
class TogetherTest {
  private static final OutgoingMessage EMPTY = OutgoingMessage.to("q").build();

  private final BlockingQueue<Runnable> answers = new LinkedBlockingQueue<>();
  private FakeBroker broker;
  private FilaClient client;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    broker.enqueue = (request, out) -> answers.add(() -> out.onNext(broker.enqueued(request)));
    client = broker.builder().executor(Runnable::run).build();
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
  }

  /** Calls again when it has its answer, on the loop: nobody is slower than the others. */
  private void callAgain(AtomicInteger left) {
    if (left.getAndDecrement() > 0) {
      client.enqueueAsync(EMPTY).thenRun(() -> callAgain(left));
    }
  }

  /** Answers one batch after the other, until there is one of so many messages. */
  private void answerUntil(int messages) throws InterruptedException {
    broker.batches.clear();
    for (int each = 0; each < 20; each++) {
      Runnable answer = answers.poll(10, TimeUnit.SECONDS);
      assertNotNull(answer, "nothing was sent");
      if (broker.batches.stream().anyMatch(batch -> batch.getMessagesCount() == messages)) {
        answers.add(answer);
        return;
      }
      answer.run();
    }
    List<Integer> sizes = broker.batches.stream().map(EnqueueBatchRequest::getMessagesCount).toList();
    throw new AssertionError("no batch of " + messages + ": " + sizes);
  }

  @Test
  void callersThatKeepComingTravelTogetherInTheEnd() throws Exception {
    for (int caller = 0; caller < 20; caller++) {
      callAgain(new AtomicInteger(Integer.MAX_VALUE));
    }
    answerUntil(20);
  }

  @Test
  void callersThatDoNotComeBackHoldNobodyUp() throws Exception {
    AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
    for (int caller = 0; caller < 10; caller++) {
      callAgain(left);
      callAgain(new AtomicInteger(Integer.MAX_VALUE));
    }
    answerUntil(20);
    left.set(0);
    answerUntil(10);
  }
}
