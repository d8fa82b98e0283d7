/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.fila.v1.SettleFailure;
import io.fila.v1.SettleResponse;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What applications do when a future is completed is their own affair: it may block, call the client, and close it. */
class CallbacksTest {
  private static final OutgoingMessage MESSAGE = OutgoingMessage.to("q").payload("x").build();

  private FakeBroker broker;
  private FilaClient client;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    broker.consume =
        (request, out) -> {
          if (!request.getQueue().isEmpty()) {
            out.onNext(FakeBroker.delivery("1", "a"));
          }
        };
    client = broker.client();
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  private static <T> T unchecked(FilaCall<T> call) {
    try {
      return call.run();
    } catch (FilaException failed) {
      throw new CompletionException(failed);
    }
  }

  private interface FilaCall<T> {
    T run() throws FilaException;
  }

  /** A future whose callback is sure to be run when it is completed, and not by the thread that adds it. */
  private CompletableFuture<EnqueueResult> notYet(CountDownLatch added) {
    broker.enqueue =
        (request, out) -> {
          await(added);
          out.onNext(broker.enqueued(request));
        };
    return client.enqueueAsync(MESSAGE);
  }

  @Test
  void aCallbackThatBlocksDoesNotHoldUpTheClient() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    CountDownLatch free = new CountDownLatch(1);
    CountDownLatch blocked = new CountDownLatch(1);
    CompletableFuture<Void> slow =
        notYet(added)
            .thenRun(
                () -> {
                  blocked.countDown();
                  await(free);
                });
    added.countDown();
    blocked.await();
    client.enqueue("q", Map.of(), new byte[1]);
    client.consume("q").take().ack();
    free.countDown();
    slow.get();
  }

  @Test
  void aCallbackMayWaitForTheClient() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    CompletableFuture<String> next =
        notYet(added).thenApply(first -> unchecked(() -> client.enqueue("q", Map.of(), new byte[1])));
    added.countDown();
    assertEquals("m2", next.get());
  }

  @Test
  void aCallbackMayWaitForAnotherFutureOfTheClient() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    CompletableFuture<String> next =
        notYet(added)
            .thenApply(
                first -> {
                  CompletableFuture<EnqueueResult> second = client.enqueueAsync(MESSAGE);
                  return CompletableFuture.allOf(second).thenApply(nothing -> second.join().id()).join();
                });
    added.countDown();
    assertEquals("m2", next.get());
  }

  @Test
  void aCallbackMayCloseTheClient() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    CompletableFuture<Void> closed = notYet(added).thenRun(client::close);
    added.countDown();
    closed.get();
    assertThrows(ClientClosedException.class, client::describe);
  }

  @Test
  void aCallbackMayCloseAConsumerWhoseObserverSettlesItsMessage() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch closing = new CountDownLatch(1);
    CompletableFuture<Void> completed = new CompletableFuture<>();
    FilaConsumer consumer =
        client.consume(
            "q",
            new StreamObserver<>() {
              @Override
              public void onNext(ConsumeMessage message) {
                entered.countDown();
                CallbacksTest.await(closing);
                message.ackAsync().join();
              }

              @Override
              public void onError(Throwable error) {
                completed.completeExceptionally(error);
              }

              @Override
              public void onCompleted() {
                completed.complete(null);
              }
            });
    CompletableFuture<Void> closed =
        notYet(added)
            .thenRun(
                () -> {
                  closing.countDown();
                  consumer.close();
                });
    entered.await();
    added.countDown();
    closed.get();
    completed.get();
  }

  @Test
  void callbacksRunOnTheExecutorThatWasGiven() throws Exception {
    ExecutorService pool = Executors.newSingleThreadExecutor(work -> new Thread(work, "mine"));
    CountDownLatch added = new CountDownLatch(1);
    try (FilaClient other = broker.builder().executor(pool).build()) {
      broker.enqueue =
          (request, out) -> {
            await(added);
            out.onNext(broker.enqueued(request));
          };
      CompletableFuture<String> name =
          other.enqueueAsync(MESSAGE).thenApply(result -> Thread.currentThread().getName());
      added.countDown();
      assertEquals("mine", name.get());
      pool.shutdown();
      other.enqueueAsync(MESSAGE).get(); // it was closed too early: nobody waits for ever
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void onTheThreadOfTheClientNothingIsWaitedFor() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    broker.enqueue =
        (request, out) -> {
          await(added);
          out.onNext(broker.enqueued(request));
        };
    try (FilaClient direct = broker.builder().executor(Runnable::run).build()) {
      FilaConsumer consumer = direct.consume("q");
      ConsumeMessage message = consumer.take();
      CompletableFuture<Void> refused =
          direct
              .enqueueAsync(MESSAGE)
              .thenRun(
                  () -> {
                    assertThrows(IllegalStateException.class, () -> direct.enqueue(MESSAGE));
                    assertThrows(IllegalStateException.class, message::ack);
                    assertThrows(IllegalStateException.class, direct::describe);
                    assertThrows(IllegalStateException.class, consumer::take);
                    consumer.close();
                  });
      added.countDown();
      refused.get();
      message.ack(); // what was refused was not sent
      assertEquals(1, broker.batches.size());
    }
  }

  @Test
  void aFutureEndsWithTheErrorItself() {
    broker.settle =
        (request, out) ->
            out.onNext(
                SettleResponse.newBuilder()
                    .setSequence(request.getSequence())
                    .addFailures(
                        SettleFailure.newBuilder()
                            .setQueue("q")
                            .setMessageId("a")
                            .setError(Error.newBuilder().setKind(ErrorKind.ERROR_KIND_LEASE_ENDED)))
                    .build());
    AtomicReference<Throwable> told = new AtomicReference<>();
    ConsumeMessage message = unchecked(() -> client.consume("q").take());
    assertThrows(
        CompletionException.class, () -> message.ackAsync().whenComplete((done, error) -> told.set(error)).join());
    assertInstanceOf(MessageNotFoundException.class, told.get());
  }

  @Test
  void slowCallbacksSlowTheProducerDown() throws Exception {
    CountDownLatch free = new CountDownLatch(1);
    CountDownLatch blocked = new CountDownLatch(1);
    Duration patience = Duration.ofMillis(500);
    try (FilaClient small = broker.builder().bufferBytes(2000).timeout(patience).build()) {
      CountDownLatch added = new CountDownLatch(1);
      broker.enqueue =
          (request, out) -> {
            await(added);
            out.onNext(broker.enqueued(request));
          };
      CompletableFuture<Void> slow =
          small
              .enqueueAsync(MESSAGE)
              .thenRun(
                  () -> {
                    blocked.countDown();
                    await(free);
                  });
      added.countDown();
      blocked.await();
      CompletableFuture<?>[] more = new CompletableFuture<?>[3];
      for (int each = 0; each < more.length; each++) {
        more[each] = small.enqueueAsync(MESSAGE);
      }
      CompletableFuture<EnqueueResult> oneTooMany = small.enqueueAsync(MESSAGE);
      free.countDown();
      slow.get();
      CompletableFuture.allOf(more).get();
      Throwable refused = assertThrows(CompletionException.class, oneTooMany::join).getCause();
      assertInstanceOf(OverloadedException.class, refused);
      assertTrue(((FilaException) refused).retryable());
    }
  }

  @Test
  void aCallbackMayWaitForRoomThatAnotherOneMakes() throws Exception {
    CountDownLatch added = new CountDownLatch(1);
    try (FilaClient small = broker.builder().bufferBytes(1100).build()) { // room for two messages
      broker.enqueue =
          (request, out) -> {
            await(added);
            out.onNext(broker.enqueued(request));
          };
      CompletableFuture<Void> first =
          small
              .enqueueAsync(MESSAGE)
              .thenRun(() -> CompletableFuture.allOf(small.enqueueAsync(MESSAGE), small.enqueueAsync(MESSAGE)).join());
      CompletableFuture<EnqueueResult> second = small.enqueueAsync(MESSAGE);
      added.countDown();
      first.get();
      second.get();
    }
  }
}
