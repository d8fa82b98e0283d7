/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.driver;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.JsonFormat;
import io.fila.client.ConsumeMessage;
import io.fila.client.EnqueueResult;
import io.fila.client.FilaAdmin;
import io.fila.client.FilaClient;
import io.fila.client.FilaConsumer;
import io.fila.client.FilaException;
import io.fila.client.OutgoingMessage;
import io.fila.client.QueueNotFoundException;
import io.fila.client.TlsOptions;
import io.fila.v1.DescribeResponse;
import io.fila.v1.ExplainResponse;
import io.fila.v1.QueueConfig;
import io.fila.v1.QueueSummary;
import java.io.File;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** One operation of the suite for each name. */
final class Operations {
  private static final long DEFAULT_MS = 5000;

  private final Map<String, FilaClient> clients = new ConcurrentHashMap<>();
  private final Map<String, FilaConsumer> consumers = new ConcurrentHashMap<>();
  private final Map<String, ConsumeMessage> held = new ConcurrentHashMap<>();

  JsonObject run(Request request) throws Exception {
    return switch (request.text("op")) {
      case "hello" -> hello();
      case "connect" -> connect(request);
      case "close" -> close(request);
      case "enqueue" -> result(client(request).enqueue(request.message(request.text("queue"))));
      case "enqueue_many" -> enqueueMany(request);
      case "cancel_enqueue" -> cancelEnqueue(request);
      case "consume" -> consume(request);
      case "next" -> next(request);
      case "stop" -> stop(request);
      case "ack", "nack", "release", "reject", "extend" -> settle(request);
      case "ack_by_id", "nack_by_id" -> settleById(request);
      case "produce" -> Load.produce(client(request), request);
      case "work" -> Load.work(client(request), request);
      case "latency" -> Load.latency(client(request), request);
      case "lifecycle" -> Load.lifecycle(client(request), request);
      case "resources" -> resources();
      default -> admin(request);
    };
  }

  void close() {
    clients.values().forEach(FilaClient::close);
  }

  private FilaClient client(Request request) throws FilaException {
    FilaClient found = clients.get(request.text("client", "c"));
    long otherwise = request.text("op").matches("produce|work|lifecycle|latency") ? 60_000 : DEFAULT_MS;
    return found.withTimeout(request.millis("timeout_ms", otherwise));
  }

  private static JsonObject hello() {
    JsonObject made = new JsonObject();
    made.addProperty("sdk", "java");
    made.addProperty("version", FilaClient.VERSION);
    made.addProperty("language", "Java " + System.getProperty("java.version"));
    made.addProperty("grpc", "grpc-netty-shaded");
    return made;
  }

  private JsonObject connect(Request request) throws FilaException {
    FilaClient.Builder made =
        FilaClient.builder().addresses(request.texts("addresses")).timeout(Duration.ofMinutes(2));
    if (request.has("api_key")) {
      made.apiKey(request.text("api_key"));
    }
    if (request.has("tls")) {
      made.tls(tls(request.part("tls")));
    }
    clients.put(request.text("client", "c"), made.build());
    return new JsonObject();
  }

  private static TlsOptions tls(Request given) {
    TlsOptions made = TlsOptions.system();
    if (given.has("ca")) {
      made = made.trust(Path.of(given.text("ca")));
    }
    if (given.has("cert")) {
      made = made.identity(Path.of(given.text("cert")), Path.of(given.text("key")));
    }
    return given.has("server_name") ? made.serverName(given.text("server_name")) : made;
  }

  private JsonObject close(Request request) {
    clients.get(request.text("client", "c")).close();
    return new JsonObject();
  }

  private static JsonObject result(EnqueueResult result) {
    if (result.error().isPresent()) {
      return Driver.object("error", Driver.described(result.error().get()));
    }
    JsonObject made = new JsonObject();
    made.addProperty("id", result.id());
    made.addProperty("duplicate", result.duplicate());
    return made;
  }

  private JsonObject enqueueMany(Request request) throws FilaException {
    List<OutgoingMessage> messages = new ArrayList<>();
    request.parts("messages").forEach(each -> messages.add(each.message(request.text("queue"))));
    JsonArray results = new JsonArray();
    client(request).enqueueMany(messages).forEach(each -> results.add(result(each)));
    return Driver.object("results", results);
  }

  private JsonObject cancelEnqueue(Request request) throws Exception {
    FilaClient client = client(request).withTimeout(Duration.ofMinutes(1));
    Future<EnqueueResult> sent = client.enqueueAsync(request.message(request.text("queue")));
    try {
      return result(sent.get(request.number("after_ms", 0), TimeUnit.MILLISECONDS));
    } catch (TimeoutException late) {
      sent.cancel(true);
      return result(sent.get());
    } catch (ExecutionException failed) {
      throw (Exception) failed.getCause();
    }
  }

  private JsonObject consume(Request request) throws FilaException {
    FilaConsumer made = client(request).consume(request.text("queue"), request.number("max_in_flight", 100));
    consumers.put(request.text("consumer"), made);
    return new JsonObject();
  }

  private JsonObject next(Request request) throws FilaException {
    long end = System.nanoTime() + request.millis("timeout_ms", DEFAULT_MS).toNanos();
    JsonArray messages = new JsonArray();
    while (messages.size() < request.number("count", 1)) {
      Duration left = Duration.ofNanos(end - System.nanoTime());
      ConsumeMessage message = consumers.get(request.text("consumer")).poll(left);
      if (message == null) {
        break;
      }
      held.put(message.id(), message);
      messages.add(shown(message));
    }
    return Driver.object("messages", messages);
  }

  private static JsonObject shown(ConsumeMessage message) {
    JsonObject made = new JsonObject();
    made.addProperty("id", message.id());
    made.addProperty("queue", message.queue());
    JsonObject headers = new JsonObject();
    message.headers().forEach(headers::addProperty);
    made.add("headers", headers);
    made.addProperty("payload", Base64.getEncoder().encodeToString(message.payload()));
    made.addProperty("fairness_key", message.fairnessKey());
    made.addProperty("attempt_count", message.attemptCount());
    made.addProperty("lease_id", message.leaseId());
    return made;
  }

  private JsonObject stop(Request request) {
    consumers.remove(request.text("consumer")).close();
    return new JsonObject();
  }

  private JsonObject settle(Request request) throws FilaException {
    ConsumeMessage message = held.get(request.text("message"));
    switch (request.text("op")) {
      case "ack" -> message.ack();
      case "nack" -> message.nack(request.text("error"), request.millis("delay_ms", 0));
      case "release" -> message.release();
      case "reject" -> message.reject(request.text("error"));
      default -> message.extend(request.millis("extend_ms", 0));
    }
    return new JsonObject();
  }

  private JsonObject settleById(Request request) throws FilaException {
    if (request.text("op").equals("ack_by_id")) {
      client(request).ack(request.text("queue"), request.text("message"));
    } else {
      client(request).nack(request.text("queue"), request.text("message"), request.text("error"));
    }
    return new JsonObject();
  }

  private JsonObject admin(Request request) throws FilaException, InvalidProtocolBufferException {
    JsonObject made = new JsonObject();
    String queue = request.text("queue");
    FilaAdmin admin = client(request).admin();
    switch (request.text("op")) {
      case "describe" -> {
        DescribeResponse found = client(request).describe();
        made.addProperty("version", found.getVersion());
        made.addProperty("max_payload_bytes", found.getLimits().getMaxPayloadBytes());
      }
      case "create_queue" -> admin.createQueue(queue, settings(request.part("settings")));
      case "delete_queue" -> admin.deleteQueue(queue, true);
      case "list_queues" ->
          made.add("queues", Driver.array(admin.listQueues().stream().map(QueueSummary::getName).toList()));
      case "stats" -> stats(admin, queue, made);
      case "set_config" -> admin.setConfig(request.text("key"), request.text("value"));
      case "get_config" -> made.addProperty("value", admin.getConfig(request.text("key")));
      case "delete_config" -> admin.deleteConfig(request.text("key"));
      case "list_config" -> {
        JsonObject entries = new JsonObject();
        admin.listConfig(request.text("prefix")).forEach((key, value) -> entries.add(key, new JsonPrimitive(value)));
        made.add("entries", entries);
      }
      case "explain" -> made.addProperty("reason", reason(admin, request));
      case "redrive" -> made.addProperty("count", admin.redrive(queue));
      case "peek" ->
          made.add(
              "ids",
              Driver.array(
                  admin.peek(queue, request.number("count", 100)).stream()
                      .map(each -> each.getMessage().getId())
                      .toList()));
      default -> throw new UnsupportedOperationException(request.text("op"));
    }
    return made;
  }

  private static QueueConfig settings(Request given) throws InvalidProtocolBufferException {
    QueueConfig.Builder made = QueueConfig.newBuilder();
    JsonFormat.parser().merge(given.given().toString(), made);
    return made.build();
  }

  private static void stats(FilaAdmin admin, String queue, JsonObject made) throws FilaException {
    QueueSummary found = admin.stats(queue).getSummary();
    long dead = 0;
    if (!found.getDeadLetterQueue().isEmpty()) {
      try {
        dead = admin.stats(found.getDeadLetterQueue()).getSummary().getDepth();
      } catch (QueueNotFoundException none) {
        dead = 0;
      }
    }
    made.addProperty("depth", found.getDepth());
    made.addProperty("in_flight", found.getInFlight());
    made.addProperty("dead_letters", dead);
  }

  private static String reason(FilaAdmin admin, Request request) throws FilaException {
    ExplainResponse found =
        request.has("message")
            ? admin.explain(request.text("queue"), request.text("message"))
            : admin.explain(request.text("queue"));
    return found.getReasonsCount() == 0 ? "" : found.getReasons(0).getCode().name().replaceFirst("WAIT_CAUSE_", "");
  }

  private static JsonObject resources() {
    String[] files = new File("/proc/self/fd").list();
    JsonObject made = new JsonObject();
    made.addProperty("threads", Thread.getAllStackTraces().keySet().stream().filter(Operations::counts).count());
    made.addProperty("tasks", 0);
    made.addProperty("handles", files == null ? 0 : files.length);
    return made;
  }

  /** The threads that answer requests are the driver's own. */
  private static boolean counts(Thread thread) {
    return !thread.getName().equals("driver");
  }
}
