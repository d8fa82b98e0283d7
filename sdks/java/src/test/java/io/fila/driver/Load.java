/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.driver;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.fila.client.ConsumeMessage;
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
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Operations with many messages. */
final class Load {
  private static final int SHOWN_BYTES = 32;

  private Load() {}

  static JsonObject produce(FilaClient client, Request request) throws Exception {
    int count = request.number("count", 1);
    String queue = request.text("queue");
    Map<String, String> headers = request.headers();
    String[] ids = new String[count];
    ConcurrentLinkedQueue<FilaException> errors = new ConcurrentLinkedQueue<>();
    AtomicInteger numbers = new AtomicInteger();
    long began = System.nanoTime();
    inThreads(
        request.number("concurrency", 1),
        () -> {
          for (int number = numbers.getAndIncrement(); number < count; number = numbers.getAndIncrement()) {
            try {
              ids[number] = client.enqueue(queue, headers, payload(number, request.number("size", 0)));
            } catch (FilaException failed) {
              errors.add(failed);
            }
          }
          return null;
        });
    JsonObject made = Driver.object("ids", Driver.array(Arrays.asList(ids)));
    JsonArray failed = new JsonArray();
    errors.forEach(each -> failed.add(Driver.described(each)));
    made.add("errors", failed);
    made.addProperty("seconds", seconds(began));
    return made;
  }

  private static byte[] payload(int number, int size) {
    byte[] head = (number + " ").getBytes(StandardCharsets.US_ASCII);
    byte[] made = Arrays.copyOf(head, Math.max(size, head.length));
    Arrays.fill(made, head.length, made.length, (byte) 'x');
    return made;
  }

  static JsonObject work(FilaClient client, Request request) throws Exception {
    int count = request.number("count", 1);
    List<String> ids = new ArrayList<>();
    List<String> shown = new ArrayList<>();
    AtomicInteger left = new AtomicInteger(count);
    int handlerMs = request.number("handler_ms", 0);
    long began = System.nanoTime();
    long end = began + request.millis("timeout_ms", 60_000).toNanos();
    try (FilaConsumer consumer = client.consume(request.text("queue"), request.number("max_in_flight", 100))) {
      inThreads(
          request.number("concurrency", 1),
          () -> {
            while (left.getAndDecrement() > 0) {
              ConsumeMessage message = acked(consumer, handlerMs, end);
              synchronized (ids) {
                ids.add(message.id());
                byte[] payload = message.payload();
                int length = Math.min(SHOWN_BYTES, payload.length);
                shown.add(new String(payload, 0, length, StandardCharsets.UTF_8));
              }
            }
            return null;
          });
    }
    JsonObject made = Driver.object("ids", Driver.array(ids));
    made.add("payloads", Driver.array(shown));
    made.addProperty("seconds", seconds(began));
    return made;
  }

  /** Takes messages until one is acked: another one comes again. */
  private static ConsumeMessage acked(FilaConsumer consumer, int handlerMs, long end) throws Exception {
    while (true) {
      ConsumeMessage message = consumer.poll(Duration.ofNanos(end - System.nanoTime()));
      if (message == null) {
        throw new TimeoutException("not all messages in time");
      }
      if (handlerMs > 0) {
        Thread.sleep(handlerMs);
      }
      try {
        message.ack();
        return message;
      } catch (FilaTimeoutException late) {
        throw late;
      } catch (FilaException lost) {
        continue;
      }
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
