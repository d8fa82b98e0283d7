/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.netty.shaded.io.netty.channel.EventLoop;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The one thread of a client. Its connections and the state of its streams live here, so that the streams need no
 * locks and an answer reaches its caller without another hop.
 */
final class Loop {
  private static final int END_SECONDS = 5;

  private final DefaultThreadFactory threads = new DefaultThreadFactory("fila-client", true);
  private volatile Thread thread;
  private final EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, this::begin, NioIoHandler.newFactory());
  private final EventLoop loop = group.next();

  EventLoopGroup group() {
    return group;
  }

  boolean isCurrent() {
    return loop.inEventLoop();
  }

  /** Runs now if the caller is on the loop, else soon. Dropped after {@link #close}. */
  void run(Runnable task) {
    if (loop.inEventLoop()) {
      task.run();
    } else {
      later(task);
    }
  }

  void later(Runnable task) {
    try {
      loop.execute(task);
    } catch (RejectedExecutionException ended) {
      // The client is closed: whoever waits was told so.
    }
  }

  void schedule(Runnable task, long delayMs) {
    try {
      loop.schedule(task, Math.max(0, delayMs), TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException ended) {
      // As above.
    }
  }

  /** Ends a rest of the thread. From any thread. */
  void wake() {
    LockSupport.unpark(thread);
  }

  /** Ends the thread, and waits for it: what netty tells of the end comes before the end of the thread. */
  void close() throws InterruptedException {
    group.shutdownGracefully(0, 2, TimeUnit.SECONDS);
    Thread begun = thread;
    if (begun != null) {
      begun.join(TimeUnit.SECONDS.toMillis(END_SECONDS));
    }
  }

  private Thread begin(Runnable work) {
    thread = threads.newThread(work);
    return thread;
  }
}
