/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * Completes the futures that applications have, away from the loop: what an application does then may block.
 *
 * <p>Unless there is an executor of the application, this is a pool of the client's own. It has one thread, and none
 * while there is nothing to do. It gets another one for as long as a callback waits for a future.
 */
final class Callbacks {
  private static final int MAX_THREADS = 64;
  private static final int IDLE_SECONDS = 5;

  private final ForkJoinPool own;
  private final Executor executor;

  Callbacks(Executor given) {
    own = given == null ? pool() : null;
    executor = given == null ? own : given;
  }

  /**
   * A future for an application: it ends as the one of the client, and cancelling it cancels that.
   *
   * @param before is done first
   */
  <T, R> CompletableFuture<R> expose(CompletableFuture<T> inner, Runnable before, Function<T, R> shown) {
    CompletableFuture<R> outer = new CompletableFuture<>();
    inner.whenComplete(
        (value, error) ->
            run(
                () -> {
                  before.run();
                  if (error == null) {
                    outer.complete(shown.apply(value));
                  } else {
                    outer.completeExceptionally(error);
                  }
                }));
    outer.whenComplete((value, error) -> inner.cancel(false));
    return outer;
  }

  /** What was to be done before is done still. */
  void shutdown() {
    if (own != null) {
      own.shutdown();
    }
  }

  /** Waits for the end of the threads, but not for itself. */
  void awaitEnd(long seconds) throws InterruptedException {
    boolean within = Thread.currentThread() instanceof ForkJoinWorkerThread worker && worker.getPool() == own;
    if (own != null && !within) {
      own.awaitTermination(seconds, TimeUnit.SECONDS);
    }
  }

  private void run(Runnable task) {
    try {
      executor.execute(task);
    } catch (RejectedExecutionException ended) {
      task.run(); // a late answer is better than none
    }
  }

  private static ForkJoinPool pool() {
    return new ForkJoinPool(
        1, Callbacks::thread, null, true, 1, MAX_THREADS, 1, pool -> true, IDLE_SECONDS, TimeUnit.SECONDS);
  }

  private static ForkJoinWorkerThread thread(ForkJoinPool pool) {
    ForkJoinWorkerThread made = ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
    made.setName("fila-callbacks");
    return made;
  }
}
