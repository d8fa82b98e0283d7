/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class CloseTest {
  private static final int ROUNDS = 80;

  private final ExecutorService pool = Executors.newCachedThreadPool();
  private FakeBroker broker;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
  }

  @AfterEach
  void disconnect() throws Exception {
    pool.shutdownNow();
    broker.close();
  }

  /** Each call has an answer or an error of the client, whenever the client is closed. */
  private void ends(Callable<?> call, FilaClient client) throws Exception {
    CyclicBarrier both = new CyclicBarrier(2);
    Future<?> called =
        pool.submit(
            () -> {
              both.await();
              return call.call();
            });
    both.await();
    client.close();
    try {
      called.get();
    } catch (ExecutionException failed) {
      assertEquals(ClientClosedException.class, failed.getCause().getClass());
    }
  }

  @Test
  void whatBeginsWhileTheClientIsClosedEnds() throws Exception {
    for (int round = 0; round < ROUNDS; round++) {
      FilaClient client = broker.client();
      ends(() -> client.enqueue("q", Map.of(), new byte[1]), client);
      FilaClient second = broker.client();
      ends(
          () -> {
            second.ack("q", "a");
            return null;
          },
          second);
      FilaClient third = broker.client();
      ends(() -> third.consume("q").take(), third);
      FilaClient fourth = broker.client();
      ends(fourth::describe, fourth);
    }
  }

  @Test
  void severalThreadsMayCloseTheClient() throws Exception {
    FilaClient client = broker.client();
    client.describe();
    List<Future<?>> closed = new ArrayList<>();
    for (int each = 0; each < 5; each++) {
      closed.add(pool.submit(client::close));
    }
    for (Future<?> each : closed) {
      each.get();
    }
    client.close();
    assertThrows(ClientClosedException.class, client::describe);
    assertThrows(ClientClosedException.class, () -> client.consume("q"));
    assertThrows(ClientClosedException.class, () -> client.core().members.at("")); // it connects no more
  }

  @Test
  void aThreadThatIsInterruptedClosesNevertheless() throws Exception {
    FilaClient client = broker.client();
    FilaConsumer consumer = client.consume("q");
    Thread.currentThread().interrupt();
    consumer.close();
    assertTrue(Thread.currentThread().isInterrupted());
    client.close();
    assertTrue(Thread.interrupted());
    assertNull(consumer.take());
    assertThrows(ClientClosedException.class, client::describe);
  }

  @Test
  void whatWaitsForRoomEndsWithTheClient() throws Exception {
    CountDownLatch sent = new CountDownLatch(1);
    broker.enqueue = (request, out) -> sent.countDown();
    FilaClient client = broker.builder().bufferBytes(1).build();
    CompletableFuture<EnqueueResult> first = client.enqueueAsync(OutgoingMessage.to("q").build());
    Future<String> second = pool.submit(() -> client.enqueue("q", Map.of(), new byte[1]));
    sent.await();
    client.close();
    for (Future<?> each : List.of(first, second)) {
      ExecutionException failed = assertThrows(ExecutionException.class, each::get);
      assertEquals(ClientClosedException.class, failed.getCause().getClass());
    }
  }

  @Test
  void aClientThatWasNeverUsedIsClosed() throws Exception {
    broker.client().close();
  }
}
