/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.ConsumeRequest;
import io.fila.v1.ConsumeResponse;
import io.fila.v1.FilaServiceGrpc;
import io.fila.v1.Message;
import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The messages of one consumer: prefetched up to its credit, over lost connections.
 *
 * <p>It reports how many messages the application was handed, so that the broker counts no attempt for the others when
 * the consumer leaves or its process dies. A message that is delivered alone is reported before the application has
 * it: if the process dies of it, the broker knows.
 */
final class ConsumeStream {
  private static final Metadata.Key<String> VISIBILITY =
      Metadata.Key.of("fila-visibility-timeout-ms", Metadata.ASCII_STRING_MARSHALLER);

  /** The broker learns within this time what the application was handed. */
  private static final long REPORT_MS = 5;

  /** How long a broker may take for its goodbye, before the stream is cancelled. */
  private static final long GOODBYE_MS = 5000;

  private static final long CONFIRM_MS = 5000;

  private final Core core;
  private final Loop loop;
  private final Members members;
  private final String queue;
  private final int credit;
  private final Duration timeout;
  private final Holdings holdings;
  private final CompletableFuture<Void> finished = new CompletableFuture<>();
  private final AtomicBoolean reportDue = new AtomicBoolean();

  // Of the application's threads and the loop, under the lock of the deque.
  private final Deque<ConsumeMessage> prefetched = new ArrayDeque<>();
  private long handed;
  private long generation;
  private boolean over;

  /** The broker has sent more than the credit: no more is read until the application has taken some. */
  private boolean paused;

  private FilaException failure;

  // Of the loop.
  private final Backoff backoff = new Backoff();
  private StreamCall<ConsumeRequest, ConsumeResponse> call;
  private Member member;
  private String pin = "";
  private boolean stopping;
  private long reported;
  private long reportedAt = System.nanoTime();
  private int hops;
  private int keysEnded;

  /**
   * For {@link Core#consume}.
   *
   * @param timeout of what settles messages
   */
  ConsumeStream(Core core, String queue, int credit, Duration timeout) {
    this.core = core;
    this.loop = core.loop;
    this.members = core.members;
    this.queue = queue;
    this.credit = credit;
    this.timeout = timeout;
    this.holdings = new Holdings(core.loop, core.settler, queue);
  }

  Holdings holdings() {
    return holdings;
  }

  Duration timeout() {
    return timeout;
  }

  /** How many messages the application could take now. */
  int prefetched() {
    synchronized (prefetched) {
      return prefetched.size();
    }
  }

  /** Completes when the stream has ended for good. */
  CompletableFuture<Void> finished() {
    return finished;
  }

  /** The next message; null at the end of the consumer, or when the time is over. */
  ConsumeMessage take(long deadline) throws FilaException, InterruptedException {
    if (Thread.interrupted()) {
      throw new InterruptedException(); // also when there are always messages
    }
    while (true) {
      ConsumeMessage message;
      long taken;
      synchronized (prefetched) {
        message = await(deadline);
        taken = generation;
        if (message == null) {
          return null;
        }
        handed++;
        if (paused && prefetched.size() <= credit) {
          paused = false;
          loop.later(this::resume);
        }
      }
      if (!message.isIsolated()) {
        if (reportDue.compareAndSet(false, true)) {
          loop.later(this::reportWhenDue);
        }
        return message;
      }
      boolean confirmed = false;
      try {
        confirmed = isConfirmed(taken);
      } finally {
        if (!confirmed) { // nobody has it: the stream has ended, or the thread was interrupted
          giveBack(List.of(message));
        }
      }
      if (confirmed) {
        return message;
      }
    }
  }

  /** Under the lock. */
  private ConsumeMessage await(long deadline) throws FilaException, InterruptedException {
    while (prefetched.isEmpty()) {
      if (failure != null) {
        throw Errors.raisedHere(failure);
      }
      long leftNs = deadline - System.nanoTime();
      if (over || leftNs <= 0) {
        return null;
      }
      TimeUnit.NANOSECONDS.timedWait(prefetched, leftNs);
    }
    return prefetched.pollFirst();
  }

  private boolean isConfirmed(long taken) throws InterruptedException {
    CompletableFuture<Boolean> confirmed = new CompletableFuture<>();
    loop.later(
        () -> {
          if (call == null || stopping || taken != generation) {
            confirmed.complete(false);
            return;
          }
          report();
          // What was sent in this turn of the loop is written before the turn after the next.
          loop.later(() -> loop.later(() -> confirmed.complete(true)));
        });
    try {
      return confirmed.get(CONFIRM_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException ended) {
      return false;
    }
  }

  void start() {
    loop.run(this::open);
  }

  /** The graceful end: what was never handed goes back at once, what the application holds stays its own. */
  CompletableFuture<Void> stop() {
    synchronized (prefetched) {
      over = true;
      holdings.forgetAll(prefetched);
      prefetched.clear();
      prefetched.notifyAll();
    }
    loop.run(
        () -> {
          if (stopping) {
            return;
          }
          stopping = true;
          if (call == null) {
            finish();
            return;
          }
          report();
          call.halfClose();
          call.more();
          loop.schedule(this::kill, GOODBYE_MS);
        });
    return finished;
  }

  /** On the loop: what is not settled goes back at once. */
  void kill() {
    if (finished.isDone()) {
      return;
    }
    stopping = true;
    if (call != null) {
      report();
      call.cancel();
      call = null;
    }
    takeBack();
    finish();
  }

  private void finish() {
    synchronized (prefetched) {
      over = true;
      prefetched.notifyAll();
    }
    core.ended(this);
    finished.complete(null);
  }

  private void open() {
    if (stopping) {
      return;
    }
    try {
      String route = members.route(queue);
      member = members.at(pin.isEmpty() ? route : pin);
      call =
          StreamCall.start(
              loop,
              member.channel(),
              members.key(),
              FilaServiceGrpc.getConsumeMethod(),
              CallOptions.DEFAULT,
              new Events());
      call.send(ConsumeRequest.newBuilder().setQueue(queue).setMaxInFlight(credit).build());
    } catch (FilaException failed) {
      fail(failed);
    }
  }

  private void fail(FilaException error) {
    synchronized (prefetched) {
      failure = error;
    }
    stopping = true;
    finish();
  }

  private final class Events implements StreamCall.Events<ConsumeResponse> {
    @Override
    public void opened(Metadata headers) {
      String told = headers.get(VISIBILITY);
      if (told != null && told.matches("\\d{1,15}")) {
        holdings.visibility(Long.parseLong(told));
      }
    }

    @Override
    public boolean message(ConsumeResponse response) {
      backoff.reset();
      hops = 0;
      keysEnded = 0;
      if (response.getVisibilityTimeoutMs() > 0) {
        holdings.visibility(response.getVisibilityTimeoutMs());
      }
      return deliver(response.getMessagesList());
    }

    @Override
    public void ended(Status status, Metadata trailers) {
      call = null;
      streamEnded(status.isOk() ? Errors.streamClosed() : Errors.of(member.explained(status), trailers));
    }
  }

  /** Returns whether there is room for more. */
  boolean deliver(List<Message> messages) {
    synchronized (prefetched) {
      if (over) {
        return true; // it was sent before the broker saw the goodbye: it is on its way back
      }
      for (Message each : messages) {
        ConsumeMessage message = new ConsumeMessage(core, this, each);
        holdings.add(message);
        prefetched.add(message);
      }
      if (messages.size() == 1) {
        prefetched.notify();
      } else {
        prefetched.notifyAll();
      }
      paused = prefetched.size() > credit;
      return !paused;
    }
  }

  private void resume() {
    if (call != null) {
      call.more();
    }
  }

  private void streamEnded(FilaException error) {
    List<ConsumeMessage> dropped = takeBack();
    if (stopping) {
      finish();
      return;
    }
    if (Errors.isNotOwner(error) && Addresses.isValid(error.owner()) && hops++ < Members.MAX_HOPS) {
      pin = error.owner();
      members.learn(queue, error.owner());
      open();
      return;
    }
    keysEnded += Errors.isKeyEnded(error) ? 1 : 0;
    boolean again = (Errors.wasLost(error) && keysEnded < 2) || error.retryable();
    if (!again || error instanceof TlsException) {
      fail(error);
      return;
    }
    if (Errors.goesElsewhere(error)) {
      members.leave(member.address);
      pin = "";
    }
    giveBack(dropped);
    loop.schedule(this::open, backoff.nextHoldMs(error.retryAfter().toMillis()));
  }

  /** In case that the broker has not noticed the loss. Handing them out would most likely be a second delivery. */
  private void giveBack(List<ConsumeMessage> dropped) {
    long deadline = Core.deadline(timeout);
    for (ConsumeMessage each : dropped) {
      holdings.forget(each.leaseId(), each.id());
      core.settler.submit(
          new Settle(Settle.Action.RELEASE, queue, each.leaseId(), List.of(each.id()), "", 0, deadline));
    }
  }

  private List<ConsumeMessage> takeBack() {
    synchronized (prefetched) {
      List<ConsumeMessage> dropped = new ArrayList<>(prefetched);
      holdings.forgetAll(dropped);
      prefetched.clear();
      paused = false;
      handed = 0;
      reported = 0;
      generation++;
      return dropped;
    }
  }

  private void reportWhenDue() {
    long waitMs = REPORT_MS - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - reportedAt);
    if (waitMs > 0) {
      loop.schedule(this::reportNow, waitMs);
    } else {
      reportNow();
    }
  }

  private void reportNow() {
    reportDue.set(false);
    if (!stopping) {
      report();
    }
  }

  private void report() {
    long count;
    synchronized (prefetched) {
      count = handed;
    }
    if (call != null && count > reported) {
      reported = count;
      reportedAt = System.nanoTime();
      call.send(ConsumeRequest.newBuilder().setHanded(count).build());
    }
  }
}
