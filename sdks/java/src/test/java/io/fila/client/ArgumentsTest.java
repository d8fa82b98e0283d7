/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.fila.v1.PeekRequest;
import io.fila.v1.QueueConfig;
import io.fila.v1.SettleRequest;
import io.grpc.stub.StreamObserver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** What no call could have meant is refused at once, where it was said, and does not touch the calls of others. */
class ArgumentsTest {
  private static final Duration SOON = Duration.ofSeconds(10);
  private static final Duration NEGATIVE = Duration.ofMillis(-1);
  private static final Duration ENDLESS = Duration.ofSeconds(Long.MAX_VALUE);

  private FakeBroker broker;
  private FilaClient client;
  private ConsumeMessage message;

  @BeforeEach
  void connect() throws Exception {
    broker = new FakeBroker();
    broker.consume =
        (request, out) -> {
          if (!request.getQueue().isEmpty()) {
            out.onNext(FakeBroker.delivery("1", "a", "b"));
          }
        };
    client = broker.client();
    message = client.consume("q").poll(SOON);
  }

  @AfterEach
  void disconnect() throws Exception {
    client.close();
    broker.close();
  }

  private static void namesTheNull(String name, Executable call) {
    assertEquals(name, assertThrows(NullPointerException.class, call, name).getMessage());
  }

  private static void isIllegal(Executable call) {
    assertThrows(IllegalArgumentException.class, call);
  }

  @Test
  void aNullIsNamed() {
    OutgoingMessage.Builder made = OutgoingMessage.to("q");
    FilaAdmin admin = client.admin();
    namesTheNull("queue", () -> client.enqueue(null, Map.of(), new byte[0]));
    namesTheNull("headers", () -> client.enqueue("q", null, new byte[0]));
    namesTheNull("payload", () -> client.enqueue("q", Map.of(), null));
    namesTheNull("message", () -> client.enqueue(null));
    namesTheNull("message", () -> client.enqueueAsync(null));
    namesTheNull("messages", () -> client.enqueueMany(null));
    namesTheNull("message", () -> client.enqueueMany(Arrays.asList(made.build(), null)));
    namesTheNull("queue", () -> OutgoingMessage.to(null));
    namesTheNull("name of a header", () -> made.header(null, ""));
    namesTheNull("value of a header", () -> made.headers(Collections.singletonMap("a", null)));
    namesTheNull("payload", () -> made.payload((String) null));
    namesTheNull("delay", () -> made.delay(null));
    namesTheNull("key", () -> made.dedupKey(null));
    namesTheNull("queue", () -> client.consume(null));
    namesTheNull("observer", () -> client.consume("q", (StreamObserver<ConsumeMessage>) null));
    namesTheNull("queue", () -> client.ack(null, "a"));
    namesTheNull("messageId", () -> client.ack("q", null));
    namesTheNull("error", () -> client.nack("q", "a", null));
    namesTheNull("error", () -> message.nack(null));
    namesTheNull("error", () -> message.reject(null));
    namesTheNull("delay", () -> message.nack("", null));
    namesTheNull("length", () -> message.extend(null));
    namesTheNull("timeout", () -> client.consume("q").poll(null));
    namesTheNull("limit", () -> client.withTimeout(null));
    namesTheNull("queue", () -> admin.createQueue(null));
    namesTheNull("config", () -> admin.updateQueue("q", (QueueConfig) null));
    namesTheNull("key", () -> admin.setThrottle(null, 1, 1));
    namesTheNull("request", () -> admin.peek((PeekRequest) null));
    namesTheNull("address", () -> FilaClient.builder().address(null));
    namesTheNull("ca", () -> TlsOptions.trusting(null));
    namesTheNull("privateKey", () -> TlsOptions.system().identity(Path.of("x"), null));
  }

  @Test
  void aTimeThatIsNegativeIsIllegal() {
    isIllegal(() -> OutgoingMessage.to("q").delay(NEGATIVE));
    isIllegal(() -> message.nackAsync("", NEGATIVE));
    isIllegal(() -> message.extend(NEGATIVE));
    isIllegal(() -> client.withTimeout(NEGATIVE));
    isIllegal(() -> client.withTimeout(Duration.ZERO));
    isIllegal(() -> client.admin().setThrottle("k", Double.NaN, 1));
    isIllegal(() -> client.admin().peek("q", 0));
  }

  @Test
  void aTimeOutThatIsOverGivesWhatIsThere() throws Exception {
    try (FilaConsumer consumer = client.consume("q")) {
      consumer.poll(SOON);
      assertEquals("b", consumer.poll(NEGATIVE).id());
    }
  }

  @Test
  void anEndlessTimeIsNoOverflow() throws Exception {
    FilaClient patient = client.withTimeout(ENDLESS);
    assertEquals("m1", patient.enqueue("q", Map.of(), new byte[1]));
    patient.describe();
    try (FilaConsumer consumer = patient.consume("q")) {
      assertEquals("a", consumer.poll(ENDLESS).id());
    }
    try (FilaClient other = broker.builder().timeout(ENDLESS).build()) {
      other.enqueue("q", Map.of(), new byte[1]);
    }
    assertDoesNotThrow(() -> OutgoingMessage.to("q").delay(ENDLESS));
  }

  @Test
  void aTimeBelowAMillisecondIsNotZero() throws Exception {
    message.nack("", Duration.ofNanos(1));
    assertEquals(1, broker.settled.stream().mapToLong(each -> each.getNacks(0).getDelayMs()).max().orElseThrow());
  }

  @Test
  void aTextThatIsNoUnicodeIsIllegal() {
    String half = "\ud800";
    isIllegal(() -> OutgoingMessage.to(half));
    isIllegal(() -> OutgoingMessage.to("q").header("a", half));
    isIllegal(() -> OutgoingMessage.to("q").headers(Map.of(half, "a")));
    isIllegal(() -> OutgoingMessage.to("q").dedupKey(half));
    isIllegal(() -> client.ack("q", half));
    isIllegal(() -> client.ack(half, "a"));
  }

  @Test
  void whatOneCallerSaysWrongDoesNotSpoilTheBatchOfAnother() throws Exception {
    CompletableFuture<Void> good = message.ackAsync();
    assertThrows(NullPointerException.class, () -> client.nack("q", "b", null));
    good.get();
    client.nack("q", "b", "failed");
  }

  @Test
  void aLongErrorTextIsCut() throws Exception {
    message.nack("\ud83d\ude00".repeat(1 << 20));
    SettleRequest sent = broker.settled.stream().filter(each -> each.getNacksCount() > 0).findFirst().orElseThrow();
    assertEquals("\ud83d\ude00".repeat(1000), sent.getNacks(0).getError());
  }

  @Test
  void whatWasBuiltDoesNotChangeAnyMore() throws Exception {
    byte[] payload = {1};
    Map<String, String> headers = new java.util.HashMap<>(Map.of("a", "b"));
    OutgoingMessage made = OutgoingMessage.to("q").headers(headers).payload(payload).build();
    payload[0] = 2;
    headers.put("a", "c");
    client.enqueue(made);
    io.fila.v1.EnqueueRequest sent = broker.batches.element().getMessages(0);
    assertEquals(1, sent.getPayload().byteAt(0));
    assertEquals("b", sent.getHeadersOrThrow("a"));
    assertThrows(UnsupportedOperationException.class, () -> message.headers().put("a", "b"));
  }

  @Test
  void anAddressThatCannotBeConnectedToIsRefused() {
    for (String each :
        List.of("a b:1", "a/b:1", "a:+1", "a:0", "a:65536", "[a]:1", "::1:1", "a\n:1", ":1", "a".repeat(300) + ":1")) {
      assertThrows(InvalidArgumentException.class, () -> FilaClient.builder().address(each).build(), each);
    }
    for (String each : List.of("localhost:5555", "10.0.0.1:1", "[::1]:65535", "fila-0.fila.svc.cluster.local:5555")) {
      assertDoesNotThrow(() -> FilaClient.builder().address(each).build().close(), each);
    }
  }

  @Test
  void filesThatAreNoCertificatesAreToldAtOnce(@TempDir Path folder) throws Exception {
    Path garbage = Files.writeString(folder.resolve("ca.pem"), "garbage");
    for (TlsOptions each :
        List.of(TlsOptions.trusting(garbage), TlsOptions.system().identity(garbage, garbage),
            TlsOptions.trusting(folder.resolve("none")))) {
      try (FilaClient wrong = broker.builder().tls(each).build()) {
        assertThrows(TlsException.class, wrong::describe);
        assertThrows(TlsException.class, () -> wrong.enqueue("q", Map.of(), new byte[1]));
        assertThrows(TlsException.class, () -> wrong.consume("q").take());
      }
    }
  }
}
