/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.ConsumeResponse;
import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.fila.v1.ExtendGroup;
import io.fila.v1.Isolation;
import io.fila.v1.SettleFailure;
import io.fila.v1.SettleRequest;
import io.fila.v1.SettleResponse;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ConsumerTest {
  private static final Duration SOON = Duration.ofSeconds(10);

  private final BlockingQueue<SettleRequest> settled = new LinkedBlockingQueue<>();
  private FakeBroker broker;
  private FilaClient client;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    broker.settle =
        (request, out) -> {
          settled.add(request);
          out.onNext(SettleResponse.newBuilder().setSequence(request.getSequence()).build());
        };
    client = broker.client();
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
  }

  private void delivers(ConsumeResponse... responses) {
    broker.consume =
        (request, out) -> {
          if (!request.getQueue().isEmpty()) {
            Arrays.stream(responses).forEach(out::onNext);
          }
        };
  }

  /** The next request that is as wanted. */
  private SettleRequest settlement(Predicate<SettleRequest> wanted) throws InterruptedException {
    SettleRequest next = settled.take();
    while (!wanted.test(next)) {
      next = settled.take();
    }
    return next;
  }

  private static ConsumeResponse isolated(String lease, String id) {
    ConsumeResponse.Builder made = FakeBroker.delivery(lease, id).toBuilder();
    made.getMessagesBuilder(0).getMetadataBuilder().setIsolation(Isolation.ISOLATION_SUSPECT);
    return made.build();
  }

  /** An observer for tests that look at one method of it. */
  private static class Observer implements StreamObserver<ConsumeMessage> {
    @Override
    public void onNext(ConsumeMessage message) {}

    @Override
    public void onError(Throwable error) {}

    @Override
    public void onCompleted() {}
  }

  @Test
  void anInterruptedThreadIsGivenNoMessage() throws Exception {
    delivers(FakeBroker.delivery("1", "a", "b"));
    try (FilaConsumer consumer = client.consume("q")) {
      assertEquals("a", consumer.take().id());
      Thread.currentThread().interrupt();
      assertThrows(CancelledException.class, consumer::take);
      assertTrue(Thread.interrupted());
      assertEquals("b", consumer.take().id());
    }
  }

  @Test
  void whatAnInterruptedThreadWasAboutToBeGivenGoesBack() throws Exception {
    delivers(isolated("1", "a"));
    CountDownLatch free = new CountDownLatch(1);
    try (FilaConsumer consumer = client.consume("q")) {
      AtomicReference<Object> outcome = new AtomicReference<>();
      // The thread of the client is busy, so that the confirmation of the message has to be waited for.
      CountDownLatch delivered = new CountDownLatch(1);
      while (consumer.stream().prefetched() == 0) {
        LockSupport.parkNanos(1_000_000);
      }
      client.core().loop.later(
          () -> {
            delivered.countDown();
            awaitQuietly(free);
          });
      delivered.await();
      Thread taker =
          new Thread(
              () -> {
                try {
                  outcome.set(consumer.take());
                } catch (FilaException failed) {
                  outcome.set(failed);
                }
              });
      taker.start();
      while (consumer.stream().prefetched() != 0) {
        LockSupport.parkNanos(1_000_000);
      }
      taker.interrupt();
      taker.join();
      free.countDown();
      assertEquals(CancelledException.class, outcome.get().getClass());
      assertTrue(settlement(each -> each.getNacksCount() > 0).getNacks(0).getRelease());
      assertTrue(consumer.stream().holdings().isEmpty());
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  @Test
  void anErrorOfAnObserverFailsItsMessageAndTheNextOneFollows() throws Exception {
    delivers(FakeBroker.delivery("1", "a", "b"));
    CompletableFuture<String> second = new CompletableFuture<>();
    client.consume(
        "q",
        new Observer() {
          @Override
          public void onNext(ConsumeMessage message) {
            if (message.id().equals("a")) {
              throw new StackOverflowError("too deep");
            }
            second.complete(message.id());
          }
        });
    assertEquals("b", second.get());
    assertTrue(settlement(each -> each.getNacksCount() > 0).getNacks(0).getError().contains("too deep"));
  }

  @Test
  void anObserverMayLeaveItsThreadInterrupted() throws Exception {
    delivers(FakeBroker.delivery("1", "a", "b"));
    CompletableFuture<String> second = new CompletableFuture<>();
    client.consume(
        "q",
        new Observer() {
          @Override
          public void onNext(ConsumeMessage message) {
            if (message.id().equals("b")) {
              second.complete(message.id());
            }
            Thread.currentThread().interrupt();
          }

          @Override
          public void onError(Throwable error) {
            second.completeExceptionally(error);
          }
        });
    assertEquals("b", second.get());
  }

  @Test
  void anObserverMayCloseItsConsumerAndItsClient() throws Exception {
    delivers(FakeBroker.delivery("1", "a"));
    CompletableFuture<Void> completed = new CompletableFuture<>();
    AtomicReference<FilaConsumer> consumer = new AtomicReference<>();
    CountDownLatch known = new CountDownLatch(1);
    consumer.set(
        client.consume(
            "q",
            new Observer() {
              @Override
              public void onNext(ConsumeMessage message) {
                awaitQuietly(known);
                consumer.get().close();
                client.close();
              }

              @Override
              public void onCompleted() {
                completed.complete(null);
              }
            }));
    known.countDown();
    completed.get();
  }

  @Test
  void closingAClientWaitsForItsObservers() throws Exception {
    delivers(FakeBroker.delivery("1", "a"));
    CompletableFuture<Thread> loop = new CompletableFuture<>();
    client.core().loop.later(() -> loop.complete(Thread.currentThread()));
    CountDownLatch entered = new CountDownLatch(1);
    AtomicReference<Thread> ran = new AtomicReference<>();
    AtomicReference<Thread.State> closing = new AtomicReference<>();
    Thread closer = new Thread(client::close);
    client.consume(
        "q",
        new Observer() {
          @Override
          public void onNext(ConsumeMessage message) {
            ran.set(Thread.currentThread());
            entered.countDown();
            joinQuietly(loop.join(), 0);
            joinQuietly(closer, 500); // in vain: it waits for this one
            closing.set(closer.getState());
          }
        });
    entered.await();
    closer.start();
    closer.join();
    assertNotEquals(Thread.State.TERMINATED, closing.get());
    assertEquals(Thread.State.TERMINATED, ran.get().getState());
  }

  private static void joinQuietly(Thread thread, long millis) {
    try {
      thread.join(millis);
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  @Test
  void nothingIsDeliveredAfterAStop() throws Exception {
    ConsumeStream stream = new ConsumeStream(client.core(), "q", 10, SOON);
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch stopped = new CountDownLatch(1);
    client.core().loop.later(
        () -> {
          entered.countDown();
          awaitQuietly(stopped);
          stream.deliver(FakeBroker.delivery("1", "a").getMessagesList());
        });
    entered.await();
    CompletableFuture<Void> finished = stream.stop();
    stopped.countDown();
    finished.get();
    assertNull(stream.take(System.nanoTime()));
    assertTrue(stream.holdings().isEmpty());
  }

  @Test
  void aSingleMessageWhoseLeaseHasEndedIsExtendedNoLonger() throws Exception {
    broker.settle =
        (request, out) -> {
          settled.add(request);
          SettleResponse.Builder made = SettleResponse.newBuilder().setSequence(request.getSequence());
          request.getExtendsList().forEach(
              group -> group.getMessageIdsList().forEach(id -> made.addFailures(gone(group.getQueue(), id))));
          out.onNext(made.build());
        };
    delivers(FakeBroker.delivery("1", "a").toBuilder().setVisibilityTimeoutMs(30).build());
    try (FilaConsumer consumer = client.consume("q")) {
      consumer.take();
      settlement(each -> each.getExtendsCount() > 0);
      while (!consumer.stream().holdings().isEmpty()) {
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  private static SettleFailure.Builder gone(String queue, String id) {
    return SettleFailure.newBuilder()
        .setQueue(queue)
        .setMessageId(id)
        .setError(Error.newBuilder().setKind(ErrorKind.ERROR_KIND_LEASE_ENDED));
  }

  @Test
  void manyMessagesOfOneLeaseAreExtendedInPortions() throws Exception {
    String[] ids = IntStream.range(0, 12_000).mapToObj(each -> "m" + each).toArray(String[]::new);
    delivers(FakeBroker.delivery("1", ids).toBuilder().setVisibilityTimeoutMs(300).build());
    try (FilaConsumer consumer = client.consume("q", 20_000)) {
      consumer.take();
      int extended = 0;
      while (extended < ids.length) {
        SettleRequest next = settlement(each -> each.getExtendsCount() > 0);
        int count = next.getExtendsList().stream().mapToInt(ExtendGroup::getMessageIdsCount).sum();
        assertTrue(count <= 5000, () -> count + " in one request");
        extended += count;
      }
    }
  }

  @Test
  void settlementsOfManyCallersFitIntoARequest() throws Exception {
    String[] ids = IntStream.range(0, 3000).mapToObj(each -> "m" + each).toArray(String[]::new);
    delivers(FakeBroker.delivery("1", ids));
    String text = "x".repeat(1000);
    CountDownLatch all = new CountDownLatch(1);
    try (FilaConsumer consumer = client.consume("q", 5000)) {
      List<ConsumeMessage> messages =
          IntStream.range(0, ids.length).mapToObj(each -> consumer.iterator().next()).toList();
      client.core().loop.later(() -> awaitQuietly(all));
      List<CompletableFuture<Void>> done =
          messages.stream().map(each -> each.nackAsync(text, Duration.ZERO)).toList();
      all.countDown();
      for (CompletableFuture<Void> each : done) {
        each.get();
      }
    }
    settled.forEach(each -> assertTrue(each.getSerializedSize() < 2 << 20, each.getSerializedSize() + " bytes"));
  }

  @Test
  void aConsumerNeedsNoThread() throws Exception {
    delivers(FakeBroker.delivery("1", "a"));
    List<String> before = threads();
    for (int each = 0; each < 20; each++) {
      client.consume("q" + each).take();
    }
    List<String> more = new java.util.ArrayList<>(threads());
    before.forEach(more::remove);
    assertEquals(1, more.size(), more::toString);
  }

  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("fila-"))
        .toList();
  }

  @Test
  void aMessageIsSettledWithinTheTimeOfItsClient() throws Exception {
    delivers(FakeBroker.delivery("1", "a"));
    broker.settle = (request, out) -> {};
    FilaConsumer consumer = client.withTimeout(Duration.ofMillis(200)).consume("q");
    assertThrows(FilaTimeoutException.class, () -> consumer.take().ack());
  }
}
