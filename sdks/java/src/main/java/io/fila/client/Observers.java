/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The threads of the observers of a client, and what completes when they are done. */
final class Observers {
  private final Map<Thread, CompletableFuture<Void>> threads = new ConcurrentHashMap<>();

  boolean isCurrent() {
    return threads.containsKey(Thread.currentThread());
  }

  CompletableFuture<Void> start(String name, Runnable work) {
    CompletableFuture<Void> done = new CompletableFuture<>();
    Thread made =
        new Thread(
            () -> {
              try {
                work.run();
              } finally {
                done.complete(null);
              }
            },
            name);
    made.setDaemon(true);
    threads.keySet().removeIf(each -> each.getState() == Thread.State.TERMINATED);
    threads.put(made, done);
    made.start();
    return done;
  }

  /** Waits for all, but not within one: they could wait for each other. */
  void awaitEnd(long seconds) throws InterruptedException {
    if (isCurrent()) {
      return;
    }
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    for (Map.Entry<Thread, CompletableFuture<Void>> each : threads.entrySet()) {
      try {
        each.getValue().get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        each.getKey().join(); // it has nothing left to do
      } catch (TimeoutException busy) {
        return;
      } catch (ExecutionException never) {
        throw new IllegalStateException(never);
      }
    }
  }
}
