/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.driver;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.fila.client.ConsumeMessage;
import io.fila.client.EnqueueResult;
import io.fila.client.FilaClient;
import io.fila.client.FilaConsumer;
import io.fila.client.FilaException;
import io.fila.client.FilaTimeoutException;
import io.fila.client.OutgoingMessage;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Operations with many messages. */
final class Load {
  private static final int SHOWN_BYTES = 32;

  private Load() {}

  /** Callers are chains of futures: each calls again when it has its answer. */
  static JsonObject produce(FilaClient client, Request request) throws Exception {
    int callers = request.number("concurrency", 1);
    Produced produced = new Produced(client, request);
    long began = System.nanoTime();
    for (int each = 0; each < callers; each++) {
      produced.call();
    }
    produced.done.await();
    JsonObject made = Driver.object("ids", Driver.array(Arrays.asList(produced.ids)));
    JsonArray failed = new JsonArray();
    produced.errors.forEach(each -> failed.add(Driver.described(each)));
    made.add("errors", failed);
    made.addProperty("seconds", seconds(began));
    return made;
  }

  private static final class Produced {
    private final FilaClient client;
    private final String queue;
    private final Map<String, String> headers;
    private final int size;
    private final String[] ids;
    private final ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
    private final AtomicInteger numbers = new AtomicInteger();
    private final CountDownLatch done;

    Produced(FilaClient client, Request request) {
      this.client = client;
      queue = request.text("queue");
      headers = request.headers();
      size = request.number("size", 0);
      ids = new String[request.number("count", 1)];
      done = new CountDownLatch(ids.length);
    }

    void call() {
      for (int number = numbers.getAndIncrement(); number < ids.length; number = numbers.getAndIncrement()) {
        int mine = number;
        CompletableFuture<EnqueueResult> sent =
            client.enqueueAsync(
                OutgoingMessage.to(queue).headers(headers).payload(payload(mine, size)).build());
        if (!sent.isDone()) {
          sent.whenComplete(
              (result, error) -> {
                answered(mine, result, error);
                call();
              });
          return;
        }
        sent.whenComplete((result, error) -> answered(mine, result, error));
      }
    }

    private void answered(int number, EnqueueResult result, Throwable error) {
      if (error == null) {
        ids[number] = result.id();
      } else {
        errors.add(error);
      }
      done.countDown();
    }
  }

  private static byte[] payload(int number, int size) {
    byte[] head = (number + " ").getBytes(StandardCharsets.US_ASCII);
    byte[] made = Arrays.copyOf(head, Math.max(size, head.length));
    Arrays.fill(made, head.length, made.length, (byte) 'x');
    return made;
  }

  /** One thread takes messages. It waits for room, not for what happens to them: so many are handled at once. */
  static JsonObject work(FilaClient client, Request request) throws Exception {
    int handlerMs = request.number("handler_ms", 0);
    int concurrency = request.number("concurrency", 1);
    Worked worked = new Worked(request.number("count", 1), concurrency);
    ExecutorService handlers = Executors.newFixedThreadPool(concurrency);
    long began = System.nanoTime();
    long end = began + request.millis("timeout_ms", 60_000).toNanos();
    try (FilaConsumer consumer = client.consume(request.text("queue"), request.number("max_in_flight", 100))) {
      while (worked.needsMore(end)) {
        ConsumeMessage message = consumer.poll(Duration.ofNanos(end - System.nanoTime()));
        if (message == null) {
          throw new TimeoutException("not all messages in time");
        }
        handled(handlerMs, handlers)
            .thenCompose(handled -> message.ackAsync())
            .whenComplete((acked, error) -> worked.settled(message, error));
      }
    } finally {
      handlers.shutdownNow();
      handlers.awaitTermination(10, TimeUnit.SECONDS);
    }
    JsonObject made = Driver.object("ids", Driver.array(worked.ids));
    made.add("payloads", Driver.array(worked.shown));
    made.addProperty("seconds", seconds(began));
    return made;
  }

  private static CompletableFuture<Void> handled(int millis, Executor handlers) {
    return millis == 0
        ? CompletableFuture.completedFuture(null)
        : CompletableFuture.runAsync(
            () -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis)), handlers);
  }

  /** What came of messages. One whose ack failed comes again. */
  private static final class Worked {
    private final int count;
    private final int concurrency;
    private final Semaphore room;
    private final List<String> ids = new ArrayList<>();
    private final List<String> shown = new ArrayList<>();
    private int begun;
    private FilaTimeoutException late;

    Worked(int count, int concurrency) {
      this.count = count;
      this.concurrency = concurrency;
      this.room = new Semaphore(concurrency);
    }

    /** Waits for room for another message, or for the end of all. */
    boolean needsMore(long end) throws FilaException, InterruptedException, TimeoutException {
      acquire(1, end);
      if (begin()) {
        return true;
      }
      acquire(concurrency - 1, end);
      if (!begin()) {
        return false;
      }
      room.release(concurrency - 1);
      return true;
    }

    private void acquire(int permits, long end) throws InterruptedException, TimeoutException {
      if (!room.tryAcquire(permits, end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
        throw new TimeoutException("not all acks in time");
      }
    }

    private synchronized boolean begin() throws FilaTimeoutException {
      if (late != null) {
        throw late;
      }
      if (begun == count) {
        return false;
      }
      begun++;
      return true;
    }

    void settled(ConsumeMessage message, Throwable error) {
      synchronized (this) {
        if (error == null) {
          byte[] payload = message.payload();
          ids.add(message.id());
          shown.add(new String(payload, 0, Math.min(SHOWN_BYTES, payload.length), StandardCharsets.UTF_8));
        } else {
          begun--;
          late = error.getCause() instanceof FilaTimeoutException timeout ? timeout : late;
        }
      }
      room.release();
    }
  }

  static JsonObject latency(FilaClient client, Request request) throws Exception {
    int count = request.number("count", 1);
    long[] took = new long[count];
    String queue = request.text("queue");
    ExecutorService receiver = Executors.newSingleThreadExecutor();
    try (FilaConsumer consumer = client.consume(queue)) {
      Future<?> receiving =
          receiver.submit(
              () -> {
                for (int index = 0; index < count; index++) {
                  ConsumeMessage message = consumer.take();
                  took[index] = System.nanoTime() - Long.parseLong(message.headers().get("sent"));
                  message.ackAsync();
                }
                return null;
              });
      List<CompletableFuture<?>> sends = new ArrayList<>();
      byte[] payload = new byte[request.number("size", 0)];
      long began = System.nanoTime();
      for (int number = 0; number < count; number++) {
        LockSupport.parkNanos(began + number * 1_000_000_000L / request.number("rate", 1) - System.nanoTime());
        String now = Long.toString(System.nanoTime());
        sends.add(client.enqueueAsync(OutgoingMessage.to(queue).header("sent", now).payload(payload).build()));
      }
      for (CompletableFuture<?> each : sends) {
        each.get();
      }
      receiving.get();
    } finally {
      receiver.shutdownNow();
    }
    Arrays.sort(took);
    JsonObject made = new JsonObject();
    made.addProperty("p50_us", took[count / 2] / 1e3);
    made.addProperty("p99_us", took[count * 99 / 100] / 1e3);
    return made;
  }

  static JsonObject lifecycle(FilaClient client, Request request) throws Exception {
    long began = System.nanoTime();
    AtomicInteger part = new AtomicInteger();
    inThreads(2, () -> part.getAndIncrement() == 0 ? produce(client, request) : work(client, request));
    JsonObject made = new JsonObject();
    made.addProperty("seconds", seconds(began));
    return made;
  }

  private static void inThreads(int threads, Callable<Object> task) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Callable<Object>> tasks = new ArrayList<>();
      for (int each = 0; each < threads; each++) {
        tasks.add(task);
      }
      for (Future<Object> each : pool.invokeAll(tasks)) {
        each.get();
      }
    } catch (ExecutionException failed) {
      throw (Exception) failed.getCause();
    } finally {
      pool.shutdownNow();
      pool.awaitTermination(10, TimeUnit.SECONDS);
    }
  }

  private static double seconds(long began) {
    return (System.nanoTime() - began) / 1e9;
  }
}
