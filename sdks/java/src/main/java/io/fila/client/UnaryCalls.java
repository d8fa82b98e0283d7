/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.CallOptions;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Calls with one answer: followed to the member that has the queue, and sent again within the deadline where that is
 * harmless.
 */
final class UnaryCalls {
  private final Loop loop;
  private final Members members;
  private final Set<Attempt<?, ?>> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  UnaryCalls(Loop loop, Members members) {
    this.loop = loop;
    this.members = members;
  }

  /**
   * From any thread.
   *
   * @param queue whose owner is asked; empty if the call is about no queue
   * @param repeatable whether it changes nothing twice, so that it may be sent again when its answer was lost
   */
  <Q, A> CompletableFuture<A> call(
      MethodDescriptor<Q, A> method, Q request, String queue, boolean repeatable, long deadline) {
    Attempt<Q, A> attempt = new Attempt<>(method, request, queue, repeatable, deadline);
    open.add(attempt);
    attempt.future.whenComplete((answer, error) -> attempt.done());
    loop.run(attempt::send);
    if (closed) {
      attempt.fail(Errors.closed());
    }
    return attempt.future;
  }

  void close(FilaException error) {
    closed = true;
    open.forEach(attempt -> attempt.fail(error));
  }

  private final class Attempt<Q, A> implements StreamCall.Events<A> {
    private final CompletableFuture<A> future = new CompletableFuture<>();
    private final MethodDescriptor<Q, A> method;
    private final Q request;
    private final String queue;
    private final boolean repeatable;
    private final long deadline;
    private final Backoff backoff = new Backoff();
    private StreamCall<Q, A> call;
    private Member member;
    private A answer;
    private FilaException trouble;
    private String pin = "";
    private boolean sent;
    private int hops;
    private int keysEnded;

    Attempt(MethodDescriptor<Q, A> method, Q request, String queue, boolean repeatable, long deadline) {
      this.method = method;
      this.request = request;
      this.queue = queue;
      this.repeatable = repeatable;
      this.deadline = deadline;
    }

    private void send() {
      if (future.isDone()) {
        return;
      }
      long left = deadline - System.nanoTime();
      if (left <= 0) {
        fail(Errors.late(sent, trouble));
        return;
      }
      answer = null;
      try {
        member = members.at(pin.isEmpty() ? members.route(queue) : pin);
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(left, TimeUnit.NANOSECONDS);
        call = StreamCall.start(loop, member.channel(), members.key(), method, options, this);
        call.send(request);
        call.halfClose();
      } catch (FilaException failed) {
        fail(failed);
      }
    }

    @Override
    public boolean message(A response) {
      if (answer != null) {
        fail(Errors.unexpected("more than one", null));
      }
      answer = response;
      return true;
    }

    @Override
    public void ended(Status status, Metadata trailers) {
      sent = sent || call.wasCreated();
      boolean created = call.wasCreated();
      call = null;
      if (status.isOk() && answer != null) {
        String owner = trailers.get(Errors.OWNER);
        if (owner != null && !queue.isEmpty()) {
          members.learn(queue, owner); // it was passed on: the next call may go there directly
        }
        future.complete(answer);
      } else if (status.isOk()) {
        failed(Errors.unexpected("no answer", null), created);
      } else {
        failed(Errors.of(member.explained(status), trailers), created);
      }
    }

    private void failed(FilaException error, boolean created) {
      if (error instanceof FilaTimeoutException) {
        fail(Errors.late(sent, trouble));
        return;
      }
      trouble = error;
      if (Errors.isNotOwner(error) && Addresses.isValid(error.owner()) && hops++ < Members.MAX_HOPS) {
        pin = error.owner();
        if (!queue.isEmpty()) {
          members.learn(queue, pin);
        }
        send();
        return;
      }
      if (Errors.goesElsewhere(error)) {
        members.leave(member.address);
        pin = "";
      }
      long waitMs = backoff.nextWaitMs(error.retryAfter().toMillis());
      boolean time = deadline - System.nanoTime() > TimeUnit.MILLISECONDS.toNanos(waitMs);
      if (time && mayRepeat(error, created)) {
        loop.schedule(this::send, waitMs);
      } else {
        fail(error);
      }
    }

    /** A broker that refuses has done nothing; a connection that is lost may have. */
    private boolean mayRepeat(FilaException error, boolean created) {
      if (Errors.isKeyEnded(error)) {
        return keysEnded++ == 0;
      }
      boolean lost = error.kind().equals("UNAVAILABLE");
      return error.retryable() && (!lost || !created || repeatable);
    }

    private void fail(FilaException error) {
      future.completeExceptionally(error);
    }

    /** Also when its caller has cancelled it. */
    private void done() {
      open.remove(this);
      loop.run(
          () -> {
            if (call != null) {
              call.cancel();
              call = null;
            }
          });
    }
  }
}
