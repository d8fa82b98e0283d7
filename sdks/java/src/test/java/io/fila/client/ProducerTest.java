/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.EnqueueBatchRequest;
import io.fila.v1.EnqueueBatchResponse;
import io.fila.v1.EnqueueRequest;
import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.fila.v1.FilaServiceGrpc;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ProducerTest {
  private static final OutgoingMessage EMPTY = OutgoingMessage.to("q").build();

  private final BlockingQueue<Runnable> answers = new LinkedBlockingQueue<>();
  private FakeBroker broker;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
  }

  @AfterEach
  void disconnect() throws Exception {
    broker.close();
  }

  /** Answers only when the test says so. */
  private void answerLater() {
    broker.enqueue = (request, out) -> answers.add(() -> out.onNext(broker.enqueued(request)));
  }

  private static OutgoingMessage message(int bytes) {
    return OutgoingMessage.to("q").payload(new byte[bytes]).build();
  }

  private static Thread started(Runnable task) {
    Thread made = new Thread(task);
    made.start();
    return made;
  }

  /** Until it waits for room. */
  private static void awaitWaiting(Thread thread) {
    while (thread.getState() != Thread.State.TIMED_WAITING) {
      assertFalse(thread.getState() == Thread.State.TERMINATED, "it did not wait");
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void moreThanTheBufferHoldsIsEnqueuedInTheEnd() throws Exception {
    try (FilaClient client = broker.builder().bufferBytes(2000).build()) {
      List<EnqueueResult> results = client.enqueueMany(Collections.nCopies(1000, EMPTY));
      assertTrue(results.stream().allMatch(each -> each.error().isEmpty()));
      assertEquals(1000, results.stream().map(EnqueueResult::id).distinct().count());
    }
  }

  @Test
  void aMessageThatIsLargerThanTheBufferIsSentAlone() throws Exception {
    try (FilaClient client = broker.builder().bufferBytes(1).build()) {
      assertEquals("m1", client.enqueue(message(1000)).id());
    }
  }

  @Test
  void aLargeMessageIsNotOvertakenBySmallOnesForEver() throws Exception {
    answerLater();
    try (FilaClient client = broker.builder().bufferBytes(10_000).build()) {
      CompletableFuture<EnqueueResult> first = client.enqueueAsync(message(5000));
      Thread large = started(() -> client.enqueueAsync(message(9000)));
      awaitWaiting(large);
      Thread small = started(() -> client.enqueueAsync(message(1)));
      awaitWaiting(small); // there would be room for it
      answers.take().run();
      first.get();
      large.join();
      answers.take().run();
      small.join();
    }
  }

  @Test
  void smallMessagesCountForWhatTheyTakeInMemory() throws Exception {
    answerLater();
    try (FilaClient client = broker.builder().bufferBytes(64 << 10).build()) {
      AtomicInteger sent = new AtomicInteger();
      Thread caller =
          started(
              () -> {
                while (!client.enqueueAsync(EMPTY).isDone()) {
                  sent.incrementAndGet();
                }
              });
      awaitWaiting(caller);
      assertTrue(sent.get() <= 128, sent.get() + " empty messages in 64 KiB");
      client.close();
      caller.join();
    }
  }

  @Test
  void manyMessagesHaveOneDeadlineTogether() throws Exception {
    answerLater();
    Duration patience = Duration.ofMillis(300);
    try (FilaClient client = broker.builder().bufferBytes(1).timeout(patience).build()) {
      List<EnqueueResult> results = client.enqueueMany(Collections.nCopies(5, EMPTY));
      assertEquals("DEADLINE_EXCEEDED", results.get(0).error().orElseThrow().kind()); // it was sent, the others not
      results.subList(1, 5).forEach(each -> assertEquals("OVERLOADED", each.error().orElseThrow().kind()));
      assertEquals(1, broker.batches.size());
    }
  }

  @Test
  void anInterruptedThreadGivesUpAllMessagesOfItsCall() throws Exception {
    answerLater();
    try (FilaClient client = broker.builder().bufferBytes(1).build()) {
      List<Exception> thrown = Collections.synchronizedList(new ArrayList<>());
      Thread caller =
          started(
              () -> {
                try {
                  client.enqueueMany(Collections.nCopies(5, EMPTY));
                } catch (CancelledException interrupted) {
                  thrown.add(interrupted);
                }
              });
      Runnable late = answers.take();
      awaitWaiting(caller);
      caller.interrupt();
      caller.join();
      assertEquals(1, thrown.size());
      late.run();
      broker.enqueue = (request, out) -> out.onNext(broker.enqueued(request));
      client.enqueue(EMPTY); // there is room again
    }
  }

  @Test
  void eachMemberHasAProducerIdOfItsOwn() throws Exception {
    List<FakeBroker> members = new ArrayList<>();
    try {
      for (int each = 0; each < 8; each++) {
        members.add(new FakeBroker());
      }
      for (int round = 0; round < 50; round++) {
        members.forEach(each -> each.batches.clear());
        inAllAtOnce(members);
        Set<String> ids = new HashSet<>();
        members.forEach(each -> ids.add(each.batches.element().getProducerId()));
        assertEquals(members.size(), ids.size(), ids::toString);
      }
    } finally {
      for (FakeBroker each : members) {
        each.close();
      }
    }
  }

  private void inAllAtOnce(List<FakeBroker> members) throws Exception {
    try (FilaClient client = broker.client()) {
      CyclicBarrier together = new CyclicBarrier(members.size());
      Queue<Exception> failed = new ConcurrentLinkedQueue<>();
      List<Thread> threads = new ArrayList<>();
      for (FakeBroker member : members) {
        client.core().members.learn("q" + member.address(), member.address());
        threads.add(
            started(
                () -> {
                  try {
                    together.await();
                    client.enqueue("q" + member.address(), Map.of(), new byte[1]);
                  } catch (Exception broken) {
                    failed.add(broken);
                  }
                }));
      }
      for (Thread each : threads) {
        each.join();
      }
      assertTrue(failed.isEmpty(), failed::toString);
    }
  }

  @Test
  void aServerCannotNameMembersWithoutEnd() throws Exception {
    try (FilaClient client = broker.client()) {
      Members members = client.core().members;
      Set<String> routes = new HashSet<>();
      for (int each = 0; each < 1000; each++) {
        members.learn("q" + each, "10.0.0.1:" + (each + 1));
        routes.add(members.route("q" + each));
      }
      assertTrue(routes.size() <= 65, routes.size() + " addresses");
    }
  }

  private static BatchStream<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> stream(
      Core core, BatchStream.Codec<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> codec) {
    return new BatchStream<>(
        core.loop, core.members, FilaServiceGrpc.getEnqueueStreamMethod(), codec, "", (waiter, owner) -> {});
  }

  @Test
  void aBatchThatTheBrokerMayHaveForgottenIsNotSentAgain() throws Exception {
    broker.enqueue =
        (request, out) -> {
          if (request.getSequence() == 1) {
            out.onError(Status.UNAVAILABLE.asRuntimeException());
          } else {
            out.onNext(broker.enqueued(request));
          }
        };
    try (FilaClient client = broker.client()) {
      Core core = client.core();
      BatchStream<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> stream = stream(core, new EnqueueCodec("p", 0));
      Enqueue lost = new Enqueue(EnqueueRequest.getDefaultInstance(), Core.deadline(Duration.ofHours(1)));
      Enqueue other = new Enqueue(EnqueueRequest.getDefaultInstance(), Core.deadline(Duration.ofHours(1)));
      stream.submit(lost);
      FilaException error = assertThrows(FailedPreconditionException.class, () -> core.await(lost.future));
      assertEquals("STALE_SEQUENCE", error.kind());
      assertFalse(error.retryable());
      stream.submit(other);
      core.await(other.future);
      assertEquals(List.of(1L, 2L), broker.batches.stream().map(EnqueueBatchRequest::getSequence).toList());
    }
  }

  @Test
  void settlementsMayBeSentAgainForEver() {
    assertEquals(Long.MAX_VALUE, new SettleCodec().repeatableNanos());
    assertTrue(EnqueueCodec.REPEATABLE_NANOS < TimeUnit.MINUTES.toNanos(10));
  }

  /** A codec that takes nothing and sees what waits. */
  private static final class Watching
      implements BatchStream.Codec<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> {
    private final AtomicInteger most = new AtomicInteger();

    @Override
    public Batch<Enqueue, EnqueueBatchRequest> makeBatch(Deque<Enqueue> gathered) {
      most.accumulateAndGet(gathered.size(), Math::max);
      return null;
    }

    @Override
    public long sequence(EnqueueBatchResponse answer) {
      return 0;
    }

    @Override
    public long repeatableNanos() {
      return Long.MAX_VALUE;
    }

    @Override
    public Error refusal(EnqueueBatchResponse answer) {
      return null;
    }

    @Override
    public void answer(
        Batch<Enqueue, EnqueueBatchRequest> batch,
        EnqueueBatchResponse answer,
        BiConsumer<Enqueue, FilaException> refused) {}
  }

  @Test
  void messagesThatWereGivenUpDoNotPileUp() throws Exception {
    Watching codec = new Watching();
    try (FilaClient client = broker.client()) {
      Core core = client.core();
      BatchStream<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> stream = stream(core, codec);
      for (int each = 0; each < 1000; each++) {
        Enqueue made = new Enqueue(EnqueueRequest.getDefaultInstance(), Core.deadline(Duration.ofHours(1)));
        stream.submit(made);
        made.future.cancel(false);
        CompletableFuture<Void> seen = new CompletableFuture<>();
        core.loop.later(() -> seen.complete(null));
        seen.get();
      }
      assertTrue(codec.most.get() > 0 && codec.most.get() <= 3, codec.most.get() + " at once");
    }
  }

  @Test
  void whatTheBrokerAsksToWaitIsWaitedAlsoWhenTheStreamIsLostMeanwhile() throws Exception {
    long askedMs = 1500;
    BlockingQueue<Long> seen = new LinkedBlockingQueue<>();
    broker.enqueue =
        (request, out) -> {
          seen.add(System.nanoTime());
          switch (seen.size()) {
            case 1 -> out.onError(Status.UNAVAILABLE.asRuntimeException());
            case 2 -> refuseAndEnd(request, out, (int) askedMs);
            default -> out.onNext(broker.enqueued(request));
          }
        };
    try (FilaClient client = broker.client()) {
      client.enqueue(EMPTY);
    }
    assertEquals(3, seen.size());
    seen.take();
    long refused = seen.take();
    assertTrue(seen.take() - refused >= TimeUnit.MILLISECONDS.toNanos(askedMs));
  }

  private static void refuseAndEnd(
      EnqueueBatchRequest request, StreamObserver<EnqueueBatchResponse> out, int retryAfterMs) {
    Error busy =
        Error.newBuilder()
            .setCode(14)
            .setKind(ErrorKind.ERROR_KIND_STORE_BUSY)
            .setRetryable(true)
            .setRetryAfterMs(retryAfterMs)
            .build();
    out.onNext(EnqueueBatchResponse.newBuilder().setSequence(request.getSequence()).setError(busy).build());
    out.onError(Status.UNAVAILABLE.asRuntimeException());
  }

  @Test
  void aBrokerCannotStopAStreamForGood() {
    assertTrue(new Backoff().nextHoldMs(Long.MAX_VALUE) <= 60_000);
    assertEquals(500, new Backoff().nextHoldMs(500));
  }

  @Test
  void aDuplicateIsTold() throws Exception {
    broker.enqueue =
        (request, out) -> {
          EnqueueBatchResponse.Builder made = broker.enqueued(request).toBuilder();
          made.getResultsBuilder(0).setDuplicate(true);
          out.onNext(made.build());
        };
    try (FilaClient client = broker.client()) {
      EnqueueResult result = client.enqueue(OutgoingMessage.to("q").dedupKey("k").build());
      assertTrue(result.duplicate());
      assertNull(result.error().orElse(null));
    }
  }

  @Test
  void anInterruptedThreadSendsNothing() throws Exception {
    try (FilaClient client = broker.client()) {
      Thread.currentThread().interrupt();
      assertThrows(CancelledException.class, () -> client.enqueue(EMPTY));
      assertTrue(Thread.interrupted());
      assertTrue(broker.batches.isEmpty());
    }
  }
}
