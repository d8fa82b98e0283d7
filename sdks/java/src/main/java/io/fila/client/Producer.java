/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.EnqueueBatchRequest;
import io.fila.v1.EnqueueBatchResponse;
import io.fila.v1.FilaServiceGrpc;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Enqueues of all threads travel together, in numbered batches. Each member of a cluster has a stream of its own, which
 * counts its batches by itself. What waits is bounded in bytes: a caller waits when there is too much.
 */
final class Producer {
  /** What a small message takes in memory while it waits. */
  private static final int OVERHEAD_BYTES = 512;

  private final Loop loop;
  private final Members members;
  private final int bufferBytes;
  private final Semaphore room;
  private final String id = UUID.randomUUID().toString();
  private final AtomicInteger suffixes = new AtomicInteger();
  private final Map<String, BatchStream<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse>> streams =
      new ConcurrentHashMap<>();
  private volatile boolean closed;

  Producer(Loop loop, Members members, int bufferBytes) {
    this.loop = loop;
    this.members = members;
    this.bufferBytes = bufferBytes;
    this.room = new Semaphore(bufferBytes, true); // fair: a large message is not overtaken for ever
  }

  /**
   * Waits while too much waits already; the loop must never wait. The answer is in the future of the waiter. Its owner
   * calls {@link #release} then.
   */
  void submit(Enqueue enqueue) throws InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    Room wanted = new Room((int) Math.min((long) enqueue.bytes + OVERHEAD_BYTES, bufferBytes), enqueue.deadline);
    if (!loop.isCurrent()) {
      ForkJoinPool.managedBlock(wanted);
    }
    if (!wanted.isReleasable()) {
      enqueue.fail(closed ? Errors.closed() : Errors.bufferFull());
    } else if (enqueue.deadline - System.nanoTime() <= 0) { // room became free by the end of others with this deadline
      room.release(wanted.bytes);
      enqueue.fail(Errors.bufferFull());
    } else {
      enqueue.room = wanted.bytes;
      send(enqueue);
    }
  }

  /** A pool goes on with other threads while one of its own waits: what makes room may be another callback. */
  private final class Room implements ForkJoinPool.ManagedBlocker {
    private final int bytes;
    private final long deadline;
    private boolean taken;

    Room(int bytes, long deadline) {
      this.bytes = bytes;
      this.deadline = deadline;
    }

    @Override
    public boolean isReleasable() {
      taken = taken || (!room.hasQueuedThreads() && room.tryAcquire(bytes));
      return taken;
    }

    @Override
    public boolean block() throws InterruptedException {
      taken = taken || room.tryAcquire(bytes, deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
      return true;
    }
  }

  /** The message has its answer: others may wait in its place. */
  void release(Enqueue enqueue) {
    room.release(enqueue.room);
  }

  private void send(Enqueue enqueue) {
    if (!closed) {
      streams.computeIfAbsent(members.route(enqueue.request.getQueue()), this::open).submit(enqueue);
    }
    if (closed) { // now, or meanwhile: then nobody knew of the stream
      enqueue.fail(Errors.closed());
    }
  }

  private BatchStream<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> open(String pin) {
    String name = pin.isEmpty() ? id : id + "-" + suffixes.incrementAndGet();
    EnqueueCodec codec = new EnqueueCodec(name, EnqueueCodec.REPEATABLE_NANOS);
    return new BatchStream<>(loop, members, FilaServiceGrpc.getEnqueueStreamMethod(), codec, pin, this::move);
  }

  private void move(Enqueue enqueue, String owner) {
    members.learn(enqueue.request.getQueue(), owner);
    send(enqueue);
  }

  void close(FilaException error) {
    closed = true;
    streams.values().forEach(stream -> stream.close(error));
  }
}
