/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.ConfigEntry;
import io.fila.v1.DescribeRequest;
import io.fila.v1.DescribeResponse;
import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.fila.v1.FilaServiceGrpc;
import io.fila.v1.ListConfigResponse;
import io.fila.v1.ListQueuesResponse;
import io.fila.v1.PeekResponse;
import io.fila.v1.PeekedMessage;
import io.fila.v1.QueueSummary;
import io.fila.v1.SettleFailure;
import io.fila.v1.SettleResponse;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Whatever a server sends: a clear error or another attempt, never a caller that waits for ever. */
class HostileBrokerTest {
  private static final Duration SOON = Duration.ofSeconds(10);
  private static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

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
  }

  private static Metadata details(byte[] bytes) {
    Metadata made = new Metadata();
    made.put(DETAILS, bytes);
    return made;
  }

  private static byte[] details(Error error) {
    return com.google.rpc.Status.newBuilder()
        .setCode(error.getCode())
        .addDetails(com.google.protobuf.Any.pack(error))
        .build()
        .toByteArray();
  }

  @Test
  void detailsThatCannotBeReadAreNoDetails() {
    broker.describe =
        (request, out) -> out.onError(Status.NOT_FOUND.asRuntimeException(details(new byte[] {-1, -1, -1})));
    FilaException refused = assertThrows(FilaException.class, client::describe);
    assertEquals("NOT_FOUND", refused.kind());
  }

  @Test
  void detailsOfAnotherStatusAreNoDetails() {
    Error other = Error.newBuilder().setCode(5).setKind(ErrorKind.ERROR_KIND_QUEUE_NOT_FOUND).build();
    broker.describe =
        (request, out) -> out.onError(Status.PERMISSION_DENIED.asRuntimeException(details(details(other))));
    FilaException refused = assertThrows(FilaException.class, client::describe);
    assertEquals("PERMISSION_DENIED", refused.kind());
  }

  @Test
  void aConsumerGoesOnAfterDetailsThatCannotBeRead() throws Exception {
    AtomicInteger streams = new AtomicInteger();
    broker.consume =
        (request, out) -> {
          if (request.getQueue().isEmpty()) {
            return;
          }
          if (streams.getAndIncrement() == 0) {
            out.onError(Status.UNAVAILABLE.asRuntimeException(details(new byte[] {-1})));
          } else {
            out.onNext(FakeBroker.delivery("1", "a"));
          }
        };
    try (FilaConsumer consumer = client.consume("q")) {
      assertEquals("a", consumer.poll(SOON).id());
    }
  }

  @Test
  void anOwnerThatIsNoAddressIsNotFollowed() {
    Error notOwner =
        Error.newBuilder().setCode(14).setKind(ErrorKind.ERROR_KIND_NOT_OWNER).setOwner("no host:80").build();
    broker.describe =
        (request, out) -> out.onError(Status.UNAVAILABLE.asRuntimeException(details(details(notOwner))));
    FilaException refused = assertThrows(FilaException.class, client::describe);
    assertEquals("NOT_OWNER", refused.kind());
  }

  @Test
  void aListWhosePagesDoNotEndIsAnError() {
    broker.listQueues =
        (request, out) ->
            FakeBroker.answer(
                out,
                ListQueuesResponse.newBuilder().addQueues(QueueSummary.newBuilder()).setCursor("again").build());
    broker.listConfig =
        (request, out) ->
            FakeBroker.answer(
                out, ListConfigResponse.newBuilder().addEntries(ConfigEntry.newBuilder()).setCursor("again").build());
    broker.peek = (request, out) -> FakeBroker.answer(out, PeekResponse.newBuilder().setCursor("again").build());
    assertThrows(InternalException.class, () -> client.admin().listQueues());
    assertThrows(InternalException.class, () -> client.admin().listConfig(""));
    assertThrows(InternalException.class, () -> client.admin().peek("q", 10));
  }

  @Test
  void aListEndsAtItsDeadline() {
    AtomicInteger page = new AtomicInteger();
    broker.listQueues =
        (request, out) ->
            FakeBroker.answer(out, ListQueuesResponse.newBuilder().setCursor("" + page.getAndIncrement()).build());
    FilaAdmin hurried = client.withTimeout(Duration.ofMillis(300)).admin();
    assertThrows(FilaTimeoutException.class, hurried::listQueues);
  }

  @Test
  void aPageThatIsLargerThanAskedForIsCut() throws Exception {
    broker.peek =
        (request, out) ->
            FakeBroker.answer(
                out,
                PeekResponse.newBuilder()
                    .addMessages(PeekedMessage.newBuilder())
                    .addMessages(PeekedMessage.newBuilder())
                    .build());
    assertEquals(1, client.admin().peek("q", 1).size());
  }

  @Test
  void aFailureOfAMessageThatNobodyNamedIsNoSuccess() {
    broker.settle =
        (request, out) ->
            out.onNext(
                SettleResponse.newBuilder()
                    .setSequence(request.getSequence())
                    .addFailures(
                        SettleFailure.newBuilder()
                            .setQueue("other")
                            .setMessageId("a")
                            .setError(Error.newBuilder().setKind(ErrorKind.ERROR_KIND_MESSAGE_NOT_FOUND)))
                    .build());
    assertThrows(InternalException.class, () -> client.ack("q", "a"));
  }

  @Test
  void anAnswerToNoBatchIsAnError() {
    broker.enqueue =
        (request, out) ->
            out.onNext(broker.enqueued(request).toBuilder().setSequence(request.getSequence() + 1).build());
    assertThrows(InternalException.class, () -> client.enqueue("q", Map.of(), new byte[1]));
  }

  @Test
  void tooFewResultsAreAnError() {
    broker.enqueue = (request, out) -> out.onNext(broker.enqueued(request).toBuilder().clearResults().build());
    assertThrows(InternalException.class, () -> client.enqueue("q", Map.of(), new byte[1]));
  }

  @Test
  void aSecondAnswerIsAnError() throws Exception {
    MethodDescriptor<DescribeRequest, DescribeResponse> several =
        FilaServiceGrpc.getDescribeMethod().toBuilder().setType(MethodDescriptor.MethodType.SERVER_STREAMING).build();
    io.grpc.Server server =
        NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
            .addService(
                ServerServiceDefinition.builder(FilaServiceGrpc.SERVICE_NAME)
                    .addMethod(several, ServerCalls.asyncServerStreamingCall(this::describeForEver))
                    .build())
            .build()
            .start();
    try (FilaClient other = FilaClient.builder().address("127.0.0.1:" + server.getPort()).build()) {
      assertThrows(InternalException.class, other::describe);
    } finally {
      server.shutdownNow().awaitTermination();
    }
  }

  private void describeForEver(DescribeRequest request, StreamObserver<DescribeResponse> out) {
    out.onNext(DescribeResponse.getDefaultInstance());
    out.onNext(DescribeResponse.getDefaultInstance()); // and no end
  }

  @Test
  void anAnswerThatWasTakenBackIsAskedForAgain() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    broker.describe =
        (request, out) -> {
          out.onNext(DescribeResponse.newBuilder().setVersion("" + calls.incrementAndGet()).build());
          if (calls.get() == 1) {
            out.onError(Status.UNAVAILABLE.asRuntimeException());
          } else {
            out.onCompleted();
          }
        };
    assertEquals("2", client.describe().getVersion());
  }

  @Test
  void aTimeToWaitIsNeverNegative() {
    FilaException made =
        Errors.of(Error.newBuilder().setKind(ErrorKind.ERROR_KIND_OVERLOADED).setRetryAfterMs(-1).build());
    assertTrue(made.retryAfter().compareTo(Duration.ZERO) > 0, made.retryAfter()::toString);
  }

  @Test
  void aServerThatTakesConnectionsAndSaysNothingIsLeft() throws Exception {
    InetAddress here = InetAddress.getByName("127.0.0.1");
    try (ServerSocket silent = new ServerSocket(0, 50, here);
        FilaClient several =
            FilaClient.builder().address("127.0.0.1:" + silent.getLocalPort()).address(broker.address()).build()) {
      assertEquals("m1", several.enqueue("q", Map.of(), new byte[1]));
    }
  }
}
