/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.MessageFilter;
import io.fila.v1.QueueConfig;
import io.grpc.stub.StreamObserver;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;

class FilaClientTest {
  private static final Duration SOON = Duration.ofSeconds(10);

  private static Server server;
  private FilaClient client;
  private String queue;

  @BeforeAll
  static void startServer() throws Exception {
    server = new Server("");
  }

  @AfterAll
  static void stopServer() throws Exception {
    server.close();
  }

  @BeforeEach
  void connect(TestInfo test) throws Exception {
    client = server.client();
    queue = test.getTestMethod().orElseThrow().getName();
    client.admin().createQueue(queue, QueueConfig.newBuilder().setMaxAttempts(3).build());
  }

  @AfterEach
  void disconnect() {
    client.close();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void aMessageIsDeliveredWithAllItsFieldsAndAcked() throws Exception {
    String id = client.enqueue(queue, Map.of("a", "b"), bytes("hello"));
    try (FilaConsumer consumer = client.consume(queue)) {
      ConsumeMessage message = consumer.poll(SOON);
      assertEquals(id, message.id());
      assertEquals(Map.of("a", "b"), message.headers());
      assertArrayEquals(bytes("hello"), message.payload());
      assertEquals(queue, message.queue());
      assertEquals("default", message.fairnessKey());
      assertEquals(0, message.attemptCount());
      assertNotNull(message.enqueuedAt());
      message.ack();
      assertThrows(MessageNotFoundException.class, message::ack);
    }
    assertEquals(0, client.admin().stats(queue).getSummary().getDepth());
  }

  @Test
  void aNackCountsAnAttemptAndAReleaseNone() throws Exception {
    client.enqueue(queue, Map.of(), bytes("x"));
    try (FilaConsumer consumer = client.consume(queue)) {
      consumer.poll(SOON).release();
      ConsumeMessage again = consumer.poll(SOON);
      assertEquals(0, again.attemptCount());
      again.nack("failed");
      ConsumeMessage third = consumer.poll(SOON);
      assertEquals(1, third.attemptCount());
      third.reject("bad");
    }
    assertEquals(1, client.admin().peek(queue + ".dlq", 10).size());
    assertEquals(1, client.admin().redrive(queue + ".dlq"));
    assertEquals(1, client.admin().purge(queue, MessageFilter.getDefaultInstance(), true));
  }

  @Test
  void aMessageIsSettledByItsId() throws Exception {
    String id = client.enqueue(queue, Map.of(), bytes("x"));
    try (FilaConsumer consumer = client.consume(queue)) {
      consumer.poll(SOON);
      client.nack(queue, id, "by id");
      assertEquals(1, consumer.poll(SOON).attemptCount());
      client.ack(queue, id);
    }
    assertThrows(MessageNotFoundException.class, () -> client.ack(queue, id));
  }

  @Test
  void anObserverIsToldOfMessagesAndOfTheEnd() throws Exception {
    List<String> seen = new ArrayList<>();
    CountDownLatch both = new CountDownLatch(2);
    CountDownLatch completed = new CountDownLatch(1);
    client.enqueue(queue, Map.of(), bytes("first"));
    FilaConsumer consumer =
        client.consume(
            queue,
            new StreamObserver<ConsumeMessage>() {
              @Override
              public void onNext(ConsumeMessage message) {
                seen.add(new String(message.payload(), StandardCharsets.UTF_8) + message.attemptCount());
                both.countDown();
                if (message.attemptCount() == 0) {
                  throw new IllegalStateException("a handler that throws has failed");
                }
                message.ackAsync().join();
              }

              @Override
              public void onError(Throwable error) {
                throw new AssertionError(error);
              }

              @Override
              public void onCompleted() {
                completed.countDown();
              }
            });
    assertTrue(both.await(10, TimeUnit.SECONDS));
    consumer.close();
    assertTrue(completed.await(1, TimeUnit.SECONDS));
    assertEquals(List.of("first0", "first1"), seen);
    assertEquals(0, client.admin().stats(queue).getSummary().getDepth());
  }

  @Test
  void aRefusalReachesTheObserver() throws Exception {
    AtomicReference<Throwable> told = new AtomicReference<>();
    CountDownLatch done = new CountDownLatch(1);
    client.consume(
        "nowhere",
        new StreamObserver<ConsumeMessage>() {
          @Override
          public void onNext(ConsumeMessage message) {}

          @Override
          public void onError(Throwable error) {
            told.set(error);
            done.countDown();
          }

          @Override
          public void onCompleted() {}
        });
    assertTrue(done.await(10, TimeUnit.SECONDS));
    assertEquals(QueueNotFoundException.class, told.get().getClass());
  }

  @Test
  void errorsHaveTypes() {
    assertThrows(QueueNotFoundException.class, () -> client.enqueue("nowhere", Map.of(), bytes("x")));
    assertThrows(QueueAlreadyExistsException.class, () -> client.admin().createQueue(queue));
    assertThrows(InvalidArgumentException.class, () -> client.admin().createQueue("a#b"));
    assertThrows(ConfigNotFoundException.class, () -> client.admin().getConfig("throttle.none"));
    assertThrows(LimitExceededException.class, () -> client.enqueue(queue, Map.of(), new byte[5 << 20]));
    assertThrows(InvalidArgumentException.class, () -> FilaClient.builder().address("no port").build());
  }

  @Test
  void aThrottleIsSetAndRemoved() throws Exception {
    client.admin().setThrottle("provider:x", 2.5, 10);
    assertTrue(client.admin().listConfig("throttle.").get("throttle.provider:x").contains("rate=2.5"));
    assertTrue(client.admin().removeThrottle("provider:x"));
  }

  @Test
  void manyThreadsShareBatchesAndEachMessageHasItsResult() throws Exception {
    Set<String> ids = ConcurrentHashMap.newKeySet();
    ConcurrentLinkedQueue<Exception> failed = new ConcurrentLinkedQueue<>();
    inThreads(
        20,
        () -> {
          for (int each = 0; each < 100; each++) {
            ids.add(client.enqueue(queue, Map.of(), bytes("x")));
          }
        },
        failed);
    assertTrue(failed.isEmpty(), failed::toString);
    assertEquals(2000, ids.size());
    List<EnqueueResult> many = client.enqueueMany(
        List.of(OutgoingMessage.to(queue).payload("a").build(), OutgoingMessage.to("nowhere").build()));
    assertTrue(many.get(0).error().isEmpty());
    assertEquals("QUEUE_NOT_FOUND", many.get(1).error().orElseThrow().kind());
    assertEquals(2001, client.admin().stats(queue).getSummary().getDepth());
  }

  @Test
  void stoppingCostsUntouchedMessagesNoAttempt() throws Exception {
    for (int each = 0; each < 10; each++) {
      client.enqueue(queue, Map.of(), bytes("x"));
    }
    FilaConsumer consumer = client.consume(queue);
    ConsumeMessage held = consumer.poll(SOON);
    consumer.close();
    assertNull(consumer.poll(Duration.ofSeconds(1)));
    assertEquals(9, client.admin().stats(queue).getSummary().getDepth());
    held.ack();
    try (FilaConsumer next = client.consume(queue)) {
      for (int each = 0; each < 9; each++) {
        ConsumeMessage message = next.poll(SOON);
        assertEquals(0, message.attemptCount());
        message.ack();
      }
    }
  }

  @Test
  void leasesAreExtended() throws Exception {
    client.admin().updateQueue(queue, QueueConfig.newBuilder().setVisibilityTimeoutMs(1000).build());
    client.enqueue(queue, Map.of(), bytes("x"));
    try (FilaConsumer consumer = client.consume(queue)) {
      ConsumeMessage held = consumer.poll(SOON);
      assertNull(consumer.poll(Duration.ofMillis(2500)));
      held.ack();
    }
  }

  @Test
  void aKilledServerLosesNothingAndDoublesNothing() throws Exception {
    try (Server own = new Server(""); FilaClient producer = own.client()) {
      producer.admin().createQueue("q");
      Set<String> ids = ConcurrentHashMap.newKeySet();
      ConcurrentLinkedQueue<Exception> failed = new ConcurrentLinkedQueue<>();
      Thread killer =
          new Thread(
              () -> {
                try {
                  while (ids.size() < 500) {
                    LockSupport.parkNanos(1_000_000);
                  }
                  own.kill();
                  own.start();
                } catch (Exception broken) {
                  failed.add(broken);
                }
              });
      killer.start();
      inThreads(
          10,
          () -> {
            for (int each = 0; each < 500; each++) {
              ids.add(producer.enqueue("q", Map.of(), bytes("message " + each)));
            }
          },
          failed);
      killer.join();
      assertTrue(failed.isEmpty(), failed::toString);
      assertEquals(5000, ids.size());
      assertEquals(5000, producer.admin().stats("q").getSummary().getDepth());
    }
  }

  @Test
  void anInterruptedThreadGivesUp() throws Exception {
    try (FilaConsumer consumer = client.consume(queue)) {
      Thread.currentThread().interrupt();
      assertThrows(CancelledException.class, consumer::take);
      assertTrue(Thread.interrupted());
    }
  }

  @Test
  void aCallEndsAtItsDeadline() throws Exception {
    try (FilaClient lost = FilaClient.builder().address("127.0.0.1:1").timeout(Duration.ofMillis(300)).build()) {
      assertThrows(UnavailableException.class, () -> lost.enqueue(queue, Map.of(), bytes("x")));
    }
  }

  @Test
  void aClosedClientRefusesCallsAndLeavesNothingBehind() throws Exception {
    Set<Thread> before = new HashSet<>(Thread.getAllStackTraces().keySet());
    for (int each = 0; each < 5; each++) {
      FilaClient other = server.client();
      other.enqueue(queue, Map.of(), bytes("x"));
      FilaConsumer consumer = other.consume(queue);
      consumer.poll(SOON).ack();
      other.close();
      assertNull(consumer.take());
      assertThrows(ClientClosedException.class, () -> other.enqueue(queue, Map.of(), bytes("x")));
      assertThrows(ClientClosedException.class, () -> other.admin().listQueues());
    }
    Set<Thread> left = new HashSet<>(Thread.getAllStackTraces().keySet());
    left.removeAll(before);
    left.removeIf(thread -> !thread.getName().startsWith("fila-"));
    assertEquals(Set.of(), left);
  }

  private interface Task {
    void run() throws Exception;
  }

  private static void inThreads(int count, Task task, ConcurrentLinkedQueue<Exception> failed) throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int each = 0; each < count; each++) {
      Thread made =
          new Thread(
              () -> {
                try {
                  task.run();
                } catch (Exception broken) {
                  failed.add(broken);
                }
              });
      threads.add(made);
      made.start();
    }
    for (Thread each : threads) {
      each.join();
    }
  }
}
