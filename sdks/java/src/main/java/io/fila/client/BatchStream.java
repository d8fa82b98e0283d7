/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.Error;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * One stream of batches: opened when there is work, written, read, opened again with backoff.
 * {@link SendWindow} decides which batch goes next. A new batch is made of the requests that wait when the wire has
 * room, so a single request leaves at once, and under load batches grow by themselves: see {@link Company}.
 */
final class BatchStream<W extends Waiter<?>, Q, A> {
  /** Turns requests into a batch, and the answer to the batch into an answer to each request. */
  interface Codec<W extends Waiter<?>, Q, A> {
    /** Takes from the front what fits into one batch. Skips requests that nobody waits for any more. */
    Batch<W, Q> makeBatch(Deque<W> gathered);

    /** For so long after it was first sent, a batch whose answer was lost may be sent again. */
    long repeatableNanos();

    long sequence(A answer);

    /** Why the whole batch was refused; null if it was not. */
    Error refusal(A answer);

    /** Throws IllegalStateException for an answer that does not fit. */
    void answer(Batch<W, Q> batch, A answer, BiConsumer<W, FilaException> refused);
  }

  /** Deadlines are looked at no more often than this, so that timeouts under load cost little. */
  private static final long SWEEP_MS = 50;

  private final Loop loop;
  private final Members members;
  private final MethodDescriptor<Q, A> method;
  private final Codec<W, Q, A> codec;
  private final BiConsumer<W, String> moved;

  private final Queue<W> incoming = new ConcurrentLinkedQueue<>();
  private final AtomicBoolean drainScheduled = new AtomicBoolean();

  /** How many more callers the loop rests for. */
  private final AtomicInteger missing = new AtomicInteger();

  private final Deque<W> gathered = new ArrayDeque<>();
  private int keptOfGathered;
  private int addedToGathered;
  private final Set<W> delayed = new LinkedHashSet<>();
  private final SendWindow<W, Q> window = new SendWindow<>();
  private final Company company = new Company();
  private boolean awaitsCompany;
  private final Backoff backoff = new Backoff();
  private String pin;
  private StreamCall<Q, A> call;
  private Member member;
  private int holds;
  private boolean sweeping;
  private long sweepAt;
  private int hops;
  private int keysEnded;
  private FilaException trouble;
  private volatile FilaException closed;

  /** An empty pin means the member in use. What another member has is handed to {@code moved}. */
  BatchStream(
      Loop loop,
      Members members,
      MethodDescriptor<Q, A> method,
      Codec<W, Q, A> codec,
      String pin,
      BiConsumer<W, String> moved) {
    this.loop = loop;
    this.members = members;
    this.method = method;
    this.codec = codec;
    this.pin = pin;
    this.moved = moved;
  }

  /** From any thread. */
  void submit(W waiter) {
    incoming.add(waiter);
    if (drainScheduled.compareAndSet(false, true)) {
      loop.later(this::drain);
    }
    if (missing.get() > 0 && missing.decrementAndGet() == 0) {
      loop.wake();
    }
    // The loop may have ended before it could see the request.
    FilaException end = closed;
    if (end != null) {
      waiter.fail(end);
    }
  }

  void close(FilaException error) {
    closed = error;
    failAll(error);
    if (call != null) {
      call.cancel();
      call = null;
    }
  }

  private void drain() {
    drainScheduled.set(false);
    for (W waiter = incoming.poll(); waiter != null; waiter = incoming.poll()) {
      if (closed != null) {
        waiter.fail(closed);
      } else {
        gather(waiter);
        sweepBy(waiter.deadline);
      }
    }
    write();
  }

  /** Requests that nobody waits for any more are dropped before they are more than the others. */
  private void gather(W waiter) {
    if (++addedToGathered > keptOfGathered) {
      dropAbandoned();
    }
    gathered.addLast(waiter);
  }

  private void dropAbandoned() {
    gathered.removeIf(waiter -> !waiter.waits());
    keptOfGathered = gathered.size();
    addedToGathered = 0;
  }

  private boolean busy() {
    return !gathered.isEmpty() || !window.isEmpty();
  }

  private void write() {
    if (holds > 0 || closed != null) {
      return;
    }
    if (call == null) {
      if (!busy()) {
        return;
      }
      open();
    }
    if (call == null) {
      return;
    }
    window.endOlder(System.nanoTime(), codec.repeatableNanos(), Errors::forgotten);
    if (company.isComing(gathered.size(), window.requests(), System.nanoTime())) {
      awaitCompany();
      return;
    }
    for (Batch<W, Q> batch = next(); batch != null; batch = next()) {
      call.send(batch.request);
    }
  }

  /** Looks again in the next turn of the loop, after a rest: the callers need the processor. */
  private void awaitCompany() {
    if (!awaitsCompany) {
      awaitsCompany = true;
      missing.set(company.missing(gathered.size()));
      loop.schedule(
          () -> {
            LockSupport.parkNanos(this, Company.QUIET_NANOS);
            awaitsCompany = false;
            missing.set(0);
            drain();
          },
          0);
    }
  }

  private Batch<W, Q> next() {
    return window.next(System.nanoTime(), () -> codec.makeBatch(gathered));
  }

  private void open() {
    try {
      member = members.at(pin);
      call = StreamCall.start(loop, member.channel(), members.key(), method, CallOptions.DEFAULT, new Events());
    } catch (FilaException failed) {
      failAll(failed);
    }
  }

  /** Nothing is written before this time has passed, and any that was set before. */
  private void hold(FilaException error) {
    holds++;
    loop.schedule(
        () -> {
          holds--;
          write();
        },
        backoff.nextHoldMs(error.retryAfter().toMillis()));
  }

  private void answered(A answer) {
    Batch<W, Q> batch = window.answered();
    if (batch == null || codec.sequence(answer) != batch.sequence) {
      FilaException wrong = Errors.unexpected("an answer that does not belong to the next batch", null);
      if (batch != null) {
        batch.fail(wrong);
      }
      broken(wrong);
      return;
    }
    backoff.reset();
    hops = 0;
    keysEnded = 0;
    trouble = null;
    Error refusal = codec.refusal(answer);
    if (refusal != null) {
      refusedWhole(batch, Errors.of(refusal));
    } else {
      try {
        codec.answer(batch, answer, this::refused);
      } catch (IllegalStateException unfit) {
        FilaException wrong = Errors.unexpected(unfit.getMessage(), unfit);
        batch.fail(wrong);
        broken(wrong);
        return;
      }
    }
    company.answered(System.nanoTime());
    write();
  }

  /** Nothing of the batch was done now. If it was sent before, that may still have been: it keeps its number. */
  private void refusedWhole(Batch<W, Q> batch, FilaException error) {
    if (batch.resent && error.retryable()) {
      batch.waiters.forEach(waiter -> waiter.trouble = error);
      window.again(batch);
      hold(error);
    } else {
      batch.waiters.forEach(waiter -> refused(waiter, error));
    }
  }

  /** Nothing was done for this request: try again if that may help and there is time, else tell its caller. */
  private void refused(W waiter, FilaException error) {
    if (!waiter.waits()) {
      return;
    }
    if (Errors.isNotOwner(error)) {
      if (waiter.hops++ < Members.MAX_HOPS) {
        moved.accept(waiter, error.owner());
        return;
      }
    } else if (error.retryable()) {
      long waitMs = waiter.nextWaitMs(error);
      if (waiter.deadline - System.nanoTime() > TimeUnit.MILLISECONDS.toNanos(waitMs)) {
        delayed.add(waiter);
        loop.schedule(
            () -> {
              if (delayed.remove(waiter)) {
                gather(waiter);
                write();
              }
            },
            waitMs);
        return;
      }
    }
    waiter.fail(error);
  }

  private void broken(FilaException error) {
    call.cancel();
    call = null;
    trouble = error;
    window.lost(true);
    hold(error);
  }

  private final class Events implements StreamCall.Events<A> {
    @Override
    public boolean message(A response) {
      answered(response);
      return true;
    }

    @Override
    public void ended(Status status, Metadata trailers) {
      boolean created = call.wasCreated();
      call = null;
      streamEnded(status.isOk() ? Errors.streamClosed() : Errors.of(member.explained(status), trailers), created);
    }
  }

  private void streamEnded(FilaException error, boolean created) {
    trouble = error;
    if (Errors.isNotOwner(error) && Addresses.isValid(error.owner()) && hops++ < Members.MAX_HOPS) {
      pin = error.owner();
      window.lost(false); // a member that names another one has done nothing
      write();
      return;
    }
    keysEnded += Errors.isKeyEnded(error) ? 1 : 0;
    if (Errors.wasLost(error) && keysEnded < 2) {
      window.lost(created);
      if (Errors.goesElsewhere(error)) {
        members.leave(member.address);
        pin = "";
      }
    } else if (Errors.concernsAll(error)) {
      failAll(error);
    } else {
      Batch<W, Q> blamed = window.refused();
      if (blamed != null) {
        blamed.waiters.forEach(waiter -> refused(waiter, error));
      }
    }
    hold(error);
  }

  private void sweepBy(long deadline) {
    if (!sweeping || deadline - sweepAt < 0) {
      sweeping = true;
      sweepAt = deadline;
      loop.schedule(this::sweep, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()) + 1);
    }
  }

  /** Fails the requests whose deadline has passed, and comes back when the next one is due. */
  private void sweep() {
    long now = System.nanoTime();
    if (sweeping && now - sweepAt < 0) {
      return; // of an earlier plan
    }
    sweeping = false;
    if (call != null && call.wasCreated()) {
      window.forEachInFlight(waiter -> waiter.sent = true);
    }
    long[] next = {Long.MAX_VALUE};
    Consumer<W> look =
        waiter -> {
          long left = waiter.deadline - now;
          if (waiter.waits() && left <= 0) {
            waiter.fail(Errors.late(waiter.sent || waiter.repeated, waiter.trouble == null ? trouble : waiter.trouble));
          } else if (waiter.waits()) {
            next[0] = Math.min(next[0], left);
          }
        };
    window.forEach(look);
    gathered.forEach(look);
    delayed.forEach(look);
    dropAbandoned();
    if (next[0] != Long.MAX_VALUE) {
      sweepBy(now + Math.max(next[0], TimeUnit.MILLISECONDS.toNanos(SWEEP_MS)));
    }
  }

  private void failAll(FilaException error) {
    window.forEach(waiter -> waiter.fail(error));
    gathered.forEach(waiter -> waiter.fail(error));
    delayed.forEach(waiter -> waiter.fail(error));
    window.clear();
    gathered.clear();
    delayed.clear();
    for (W waiter = incoming.poll(); waiter != null; waiter = incoming.poll()) {
      waiter.fail(error);
    }
  }
}
