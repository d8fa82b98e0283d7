/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One call of any kind, whose events come on the loop, in order. A response is asked for when the one before was taken:
 * what a server sends beyond that waits on its side.
 */
final class StreamCall<Q, A> {
  /** What happens to a call. */
  interface Events<A> {
    default void opened(Metadata headers) {}

    /** Returns whether the next one may come now. If not, {@link StreamCall#more} asks for it. */
    boolean message(A response);

    void ended(Status status, Metadata trailers);
  }

  private final Loop loop;
  private final ClientCall<Q, A> call;
  private final Events<A> events;
  private volatile boolean created;
  private boolean paused;
  private boolean ended;

  private StreamCall(
      Loop loop, Channel channel, MethodDescriptor<Q, A> method, CallOptions options, Events<A> events) {
    this.loop = loop;
    this.events = events;
    this.call = channel.newCall(method, options.withStreamTracerFactory(new Tracers()));
  }

  static <Q, A> StreamCall<Q, A> start(
      Loop loop, Channel channel, ApiKey key, MethodDescriptor<Q, A> method, CallOptions options, Events<A> events) {
    StreamCall<Q, A> made = new StreamCall<>(loop, channel, method, options, events);
    Metadata headers = new Metadata();
    if (key != null) {
      key.addTo(headers);
    }
    made.call.start(made.new Listener(), headers);
    made.call.request(1);
    return made;
  }

  void send(Q request) {
    call.sendMessage(request);
  }

  void halfClose() {
    call.halfClose();
  }

  /** Goes on with responses. */
  void more() {
    if (paused && !ended) {
      paused = false;
      call.request(1);
    }
  }

  /** No event follows. */
  void cancel() {
    ended = true;
    call.cancel("not needed any more", null);
  }

  /** Whether there was a connection for it. If not, nothing of it was sent. */
  boolean wasCreated() {
    return created;
  }

  private final class Tracers extends ClientStreamTracer.Factory {
    @Override
    public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
      return new ClientStreamTracer() {
        @Override
        public void streamCreated(io.grpc.Attributes transport, Metadata sent) {
          created = true;
        }
      };
    }
  }

  /**
   * gRPC calls it on the loop, but for what happens while it connects. That has to wait for the loop, and what follows
   * has to wait behind it.
   */
  private final class Listener extends ClientCall.Listener<A> {
    private final AtomicInteger waiting = new AtomicInteger();

    @Override
    public void onHeaders(Metadata headers) {
      inOrder(() -> events.opened(headers));
    }

    @Override
    public void onMessage(A response) {
      inOrder(
          () -> {
            if (events.message(response)) {
              call.request(1);
            } else {
              paused = true;
            }
          });
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      // Never within the method that began the call: it has not yet noted the call.
      later(
          () -> {
            ended = true;
            events.ended(status, trailers);
          });
    }

    private void inOrder(Runnable event) {
      if (loop.isCurrent() && waiting.get() == 0) {
        happen(event);
      } else {
        later(event);
      }
    }

    private void later(Runnable event) {
      waiting.incrementAndGet();
      loop.later(
          () -> {
            waiting.decrementAndGet();
            happen(event);
          });
    }

    private void happen(Runnable event) {
      if (!ended) {
        event.run();
      }
    }
  }
}
