/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Messages of a queue, as they come. It connects by itself, again and again, until it is closed or the broker refuses
 * it. Several threads may take messages.
 *
 * <p>{@link #close()} stops gracefully: messages that nobody was handed go back at once and no attempt is counted for
 * them, and what the application holds stays its own until it is settled.
 */
public final class FilaConsumer implements Iterable<ConsumeMessage>, AutoCloseable {
  private final Core core;
  private final ConsumeStream stream;
  private volatile CompletableFuture<Void> observing = CompletableFuture.completedFuture(null);

  FilaConsumer(Core core, ConsumeStream stream) {
    this.core = core;
    this.stream = stream;
  }

  /**
   * Waits for the next message.
   *
   * @return the message; null when the consumer or its client was closed
   * @throws QueueNotFoundException if the queue does not exist
   * @throws PermissionDeniedException if the key does not allow it
   * @throws CancelledException if the thread is interrupted
   * @throws FilaException if the broker refuses the consumer
   */
  public ConsumeMessage take() throws FilaException {
    return takeUntil(Core.deadline(Arguments.FOREVER));
  }

  /**
   * Waits for the next message, for some time.
   *
   * @param timeout the longest time to wait; zero or less takes what is there
   * @return the message; null when there was none in time, or the consumer was closed
   * @throws QueueNotFoundException if the queue does not exist
   * @throws PermissionDeniedException if the key does not allow it
   * @throws CancelledException if the thread is interrupted
   * @throws FilaException if the broker refuses the consumer
   */
  public ConsumeMessage poll(Duration timeout) throws FilaException {
    return takeUntil(Core.deadline(Objects.requireNonNull(timeout, "timeout")));
  }

  private ConsumeMessage takeUntil(long deadline) throws FilaException {
    core.checkMayWait();
    try {
      return stream.take(deadline);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw Errors.cancelled();
    }
  }

  /**
   * The messages, until the consumer is closed. Waits for each. Errors are thrown as {@link UncheckedFilaException}.
   *
   * @return an iterator for one thread
   */
  @Override
  public Iterator<ConsumeMessage> iterator() {
    return new Iterator<>() {
      private ConsumeMessage next;

      @Override
      public boolean hasNext() {
        if (next == null) {
          try {
            next = take();
          } catch (FilaException failed) {
            throw new UncheckedFilaException(failed);
          }
        }
        return next != null;
      }

      @Override
      public ConsumeMessage next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        ConsumeMessage taken = next;
        next = null;
        return taken;
      }
    };
  }

  /**
   * Stops gracefully, and waits until the broker has confirmed it. With an observer, also until the observer has
   * returned; it is told {@code onCompleted} then. Does not wait for an observer within one: they could wait for each
   * other.
   */
  @Override
  public void close() {
    stream.stop();
    if (core.loop.isCurrent()) {
      return;
    }
    stream.finished().join(); // at most 5 s, so also an interrupted thread stops in good order
    if (core.observers.isCurrent()) {
      return;
    }
    try {
      observing.get();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException never) {
      throw new IllegalStateException(never);
    }
  }

  /** The observer has a thread of its own, so that it may block. */
  void observe(String queue, StreamObserver<ConsumeMessage> observer) {
    observing = core.observers.start("fila-observer-" + queue, () -> run(observer));
  }

  private void run(StreamObserver<ConsumeMessage> observer) {
    try {
      for (ConsumeMessage message = take(); message != null; message = take()) {
        handle(observer, message);
      }
      observer.onCompleted();
    } catch (FilaException failed) {
      stream.stop();
      observer.onError(failed);
    }
  }

  /**
   * A handler that throws has failed, be it by an error of the virtual machine: its message is nacked with the text,
   * unless the handler has settled it.
   */
  private void handle(StreamObserver<ConsumeMessage> observer, ConsumeMessage message) {
    try {
      core.tracing.within(message.headers(), () -> observer.onNext(message));
    } catch (Throwable thrown) {
      if (!message.isSettled()) {
        message.nackAsync(String.valueOf(thrown), Duration.ZERO);
      }
    } finally {
      Thread.interrupted(); // what the handler left is not for the next message
    }
  }

  ConsumeStream stream() {
    return stream;
  }
}
