/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/** Everything that the views of one client share: its thread, its connections and their streams. */
final class Core {
  private static final int END_SECONDS = 5;

  final Loop loop = new Loop();
  final Callbacks callbacks;
  final Observers observers = new Observers();
  final Members members;
  final Producer producer;
  final Settler settler;
  final Tracing tracing = Tracing.find();
  private final UnaryCalls unary;
  private final Set<ConsumeStream> consumers = ConcurrentHashMap.newKeySet();
  private final Set<Holdings> holdings = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean closing = new AtomicBoolean();
  private final CompletableFuture<Thread> closer = new CompletableFuture<>();

  Core(Settings settings) {
    callbacks = new Callbacks(settings.executor());
    members = new Members(loop, settings);
    producer = new Producer(loop, members, settings.bufferBytes());
    settler = new Settler(loop, members);
    unary = new UnaryCalls(loop, members);
  }

  static long deadline(Duration timeout) {
    return System.nanoTime() + Arguments.nanos(timeout);
  }

  <Q, A> A call(MethodDescriptor<Q, A> method, Q request, String queue, boolean repeatable, long deadline)
      throws FilaException {
    checkMayWait();
    return await(unary.call(method, request, queue, repeatable, deadline));
  }

  EnqueueResult enqueue(Enqueue enqueue) throws FilaException {
    checkMayWait();
    return await(begin(enqueue));
  }

  /** Without a callback: the message leaves the buffer with its answer. */
  CompletableFuture<EnqueueResult> begin(Enqueue enqueue) {
    submit(enqueue);
    enqueue.future.whenComplete((result, error) -> producer.release(enqueue));
    return enqueue.future;
  }

  /** The message leaves the buffer when its callback runs. So slow callbacks slow the producer down. */
  CompletableFuture<EnqueueResult> enqueueAsync(Enqueue enqueue) {
    submit(enqueue);
    return callbacks.expose(enqueue.future, () -> producer.release(enqueue), Function.identity());
  }

  /** An interrupted thread gives its message up. */
  private void submit(Enqueue enqueue) {
    try {
      producer.submit(enqueue);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      enqueue.fail(Errors.cancelled());
    }
  }

  void settle(Settle settle) throws FilaException {
    checkMayWait();
    submit(settle);
    await(settle.future);
  }

  CompletableFuture<Void> settleAsync(Settle settle) {
    submit(settle);
    return callbacks.expose(settle.future, () -> {}, failed -> null);
  }

  private void submit(Settle settle) {
    if (settle.leaseId.isEmpty()) { // of no known delivery: whoever holds it extends it no longer
      holdings.stream()
          .filter(held -> held.queue().equals(settle.queue))
          .forEach(held -> settle.ids.forEach(id -> held.forget("", id)));
    }
    settler.submit(settle);
  }

  ConsumeStream consume(String queue, int credit, Duration timeout) throws FilaException {
    ConsumeStream made = new ConsumeStream(this, queue, credit, timeout);
    consumers.add(made);
    if (closing.get()) { // else the end of the client sees the consumer
      consumers.remove(made);
      throw Errors.closed();
    }
    holdings.removeIf(held -> held.isEmpty() && held.isOver());
    holdings.add(made.holdings());
    made.start();
    return made;
  }

  void ended(ConsumeStream stream) {
    consumers.remove(stream);
    stream.holdings().over();
  }

  /** With an executor that runs callbacks where they are, applications are on the loop. */
  void checkMayWait() {
    if (loop.isCurrent()) {
      throw new IllegalStateException("a blocking call on the client's own thread would never end: use another thread");
    }
  }

  /** Waits for an answer. An interrupted thread gives its request up. */
  <T> T await(CompletableFuture<T> future) throws FilaException {
    try {
      return future.get();
    } catch (InterruptedException interrupted) {
      future.cancel(true);
      Thread.currentThread().interrupt();
      throw Errors.cancelled();
    } catch (CancellationException cancelled) {
      throw Errors.cancelled();
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof FilaException error) {
        throw Errors.raisedHere(error);
      }
      throw Errors.unexpected("the client failed", failed.getCause());
    }
  }

  /** Ends everything, and waits for its end. Calls that wait fail as closed. */
  void close() {
    if (closing.compareAndSet(false, true)) {
      loop.run(this::end);
    }
    if (!loop.isCurrent()) {
      try {
        closer.get().join();
        callbacks.awaitEnd(END_SECONDS);
        observers.awaitEnd(END_SECONDS);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      } catch (ExecutionException never) {
        throw new IllegalStateException(never);
      }
    }
  }

  private void end() {
    FilaException error = Errors.closed();
    consumers.forEach(ConsumeStream::kill);
    holdings.forEach(Holdings::close);
    producer.close(error);
    settler.close(error);
    unary.close(error);
    List<ManagedChannel> channels = members.close();
    // The loop cannot wait for its own end.
    Thread last = new Thread(() -> awaitEnd(channels), "fila-client-close");
    last.setDaemon(true);
    last.start();
    closer.complete(last);
  }

  private void awaitEnd(List<ManagedChannel> channels) {
    try {
      long end = deadline(Duration.ofSeconds(END_SECONDS));
      for (ManagedChannel channel : channels) {
        channel.awaitTermination(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      }
      loop.close();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } finally {
      callbacks.shutdown();
    }
  }
}
