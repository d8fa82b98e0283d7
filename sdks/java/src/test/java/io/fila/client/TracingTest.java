/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.ConsumeResponse;
import io.fila.v1.EnqueueRequest;
import io.grpc.stub.StreamObserver;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import java.io.File;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TracingTest {
  private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
  private static final String PARENT = "00-" + TRACE + "-b7ad6b7169203331-01";

  private final SdkTracerProvider provider = SdkTracerProvider.builder().addSpanProcessor(new Discarding()).build();
  private FakeBroker broker;
  private FilaClient client;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    client = broker.client();
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
    provider.close();
  }

  /** A provider without one makes no spans. */
  private static final class Discarding implements SpanProcessor {
    @Override
    public void onStart(Context parent, ReadWriteSpan span) {}

    @Override
    public boolean isStartRequired() {
      return false;
    }

    @Override
    public void onEnd(ReadableSpan span) {}

    @Override
    public boolean isEndRequired() {
      return true;
    }
  }

  private EnqueueRequest sent(Map<String, String> headers) throws FilaException {
    client.enqueue("q", headers, new byte[1]);
    return broker.batches.remove().getMessages(0);
  }

  @Test
  void aMessageCarriesTheContextOfItsSpan() throws Exception {
    Span span = provider.get("test").spanBuilder("produce").startSpan();
    try (Scope within = span.makeCurrent()) {
      SpanContext own = span.getSpanContext();
      String parent = sent(Map.of("a", "b")).getHeadersOrThrow("traceparent");
      assertEquals("00-" + own.getTraceId() + "-" + own.getSpanId() + "-" + own.getTraceFlags().asHex(), parent);
      assertEquals(PARENT, sent(Map.of("traceparent", PARENT)).getHeadersOrThrow("traceparent"));
    } finally {
      span.end();
    }
    assertEquals(Map.of("a", "b"), sent(Map.of("a", "b")).getHeadersMap());
  }

  @Test
  void anObserverRunsInTheContextOfItsMessage() throws Exception {
    ConsumeResponse.Builder delivery = FakeBroker.delivery("1", "a").toBuilder();
    delivery.getMessagesBuilder(0).putHeaders("traceparent", PARENT);
    broker.consume =
        (request, out) -> {
          if (!request.getQueue().isEmpty()) {
            out.onNext(delivery.build());
          }
        };
    CompletableFuture<SpanContext> seen = new CompletableFuture<>();
    client.consume(
        "q",
        new StreamObserver<>() {
          @Override
          public void onNext(ConsumeMessage message) {
            seen.complete(Span.current().getSpanContext());
          }

          @Override
          public void onError(Throwable error) {
            seen.completeExceptionally(error);
          }

          @Override
          public void onCompleted() {}
        });
    assertEquals(TRACE, seen.get().getTraceId());
    try (FilaConsumer other = client.consume("q")) {
      Span parent = Span.fromContext(FilaTracing.contextOf(other.take()));
      assertEquals(TRACE, parent.getSpanContext().getTraceId());
    }
  }

  /** The classes of the SDK alone, loaded with everything that it needs but OpenTelemetry. */
  @Test
  void openTelemetryIsOptional() throws Exception {
    List<URL> path = new ArrayList<>(List.of(Path.of("target/classes/").toUri().toURL()));
    for (String each : Files.readString(Path.of("target/classpath")).split(File.pathSeparator)) {
      if (!each.contains("opentelemetry")) {
        path.add(Path.of(each.strip()).toUri().toURL());
      }
    }
    try (URLClassLoader without =
        new URLClassLoader(path.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
      Class<?> type = without.loadClass(FilaClient.class.getName());
      Object builder = type.getMethod("builder").invoke(null);
      builder = builder.getClass().getMethod("address", String.class).invoke(builder, broker.address());
      try (AutoCloseable other = (AutoCloseable) builder.getClass().getMethod("build").invoke(builder)) {
        Method enqueue = type.getMethod("enqueue", String.class, Map.class, byte[].class);
        assertEquals("m1", enqueue.invoke(other, "q", Map.of(), new byte[1]));
      }
      Method find = without.loadClass(Tracing.class.getName()).getDeclaredMethod("find");
      find.setAccessible(true);
      assertTrue(find.invoke(null).getClass().getName().endsWith("Tracing$None"));
    }
    assertFalse(Tracing.find() instanceof Tracing.None);
  }
}
