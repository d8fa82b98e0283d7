/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.ConsumeRequest;
import io.fila.v1.ConsumeResponse;
import io.fila.v1.DescribeRequest;
import io.fila.v1.DescribeResponse;
import io.fila.v1.EnqueueBatchRequest;
import io.fila.v1.EnqueueBatchResponse;
import io.fila.v1.EnqueueResult;
import io.fila.v1.FilaAdminGrpc;
import io.fila.v1.FilaServiceGrpc;
import io.fila.v1.ListConfigRequest;
import io.fila.v1.ListConfigResponse;
import io.fila.v1.ListQueuesRequest;
import io.fila.v1.ListQueuesResponse;
import io.fila.v1.Message;
import io.fila.v1.MessageMetadata;
import io.fila.v1.PeekRequest;
import io.fila.v1.PeekResponse;
import io.fila.v1.SettleRequest;
import io.fila.v1.SettleResponse;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;

/** A broker in this process that says what a test has it say, and else what a broker would. */
final class FakeBroker implements AutoCloseable {
  final Queue<EnqueueBatchRequest> batches = new ConcurrentLinkedQueue<>();
  final Queue<SettleRequest> settled = new ConcurrentLinkedQueue<>();
  final Queue<ConsumeRequest> consumed = new ConcurrentLinkedQueue<>();

  volatile BiConsumer<DescribeRequest, StreamObserver<DescribeResponse>> describe =
      (request, out) -> answer(out, DescribeResponse.getDefaultInstance());
  volatile BiConsumer<EnqueueBatchRequest, StreamObserver<EnqueueBatchResponse>> enqueue =
      (request, out) -> out.onNext(enqueued(request));
  volatile BiConsumer<SettleRequest, StreamObserver<SettleResponse>> settle =
      (request, out) -> out.onNext(SettleResponse.newBuilder().setSequence(request.getSequence()).build());
  volatile BiConsumer<ConsumeRequest, StreamObserver<ConsumeResponse>> consume = (request, out) -> {};
  volatile BiConsumer<ListQueuesRequest, StreamObserver<ListQueuesResponse>> listQueues =
      (request, out) -> answer(out, ListQueuesResponse.getDefaultInstance());
  volatile BiConsumer<ListConfigRequest, StreamObserver<ListConfigResponse>> listConfig =
      (request, out) -> answer(out, ListConfigResponse.getDefaultInstance());
  volatile BiConsumer<PeekRequest, StreamObserver<PeekResponse>> peek =
      (request, out) -> answer(out, PeekResponse.getDefaultInstance());

  private final AtomicInteger ids = new AtomicInteger();
  private final io.grpc.Server server;

  FakeBroker() throws IOException {
    server =
        NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
            .addService(new Service())
            .addService(new Admin())
            .build()
            .start();
  }

  String address() {
    return "127.0.0.1:" + server.getPort();
  }

  FilaClient client() throws FilaException {
    return builder().build();
  }

  FilaClient.Builder builder() {
    return FilaClient.builder().address(address()).timeout(Duration.ofSeconds(10));
  }

  EnqueueBatchResponse enqueued(EnqueueBatchRequest request) {
    EnqueueBatchResponse.Builder made = EnqueueBatchResponse.newBuilder().setSequence(request.getSequence());
    request
        .getMessagesList()
        .forEach(each -> made.addResults(EnqueueResult.newBuilder().setMessageId("m" + ids.incrementAndGet())));
    return made.build();
  }

  static <A> void answer(StreamObserver<A> out, A answer) {
    out.onNext(answer);
    out.onCompleted();
  }

  /** Messages under one lease, in one response. */
  static ConsumeResponse delivery(String lease, String... ids) {
    ConsumeResponse.Builder made = ConsumeResponse.newBuilder();
    for (String id : ids) {
      made.addMessages(Message.newBuilder().setId(id).setMetadata(MessageMetadata.newBuilder().setLeaseId(lease)));
    }
    return made.build();
  }

  @Override
  public void close() throws InterruptedException {
    server.shutdownNow().awaitTermination();
  }

  private static <Q, A> StreamObserver<Q> stream(
      StreamObserver<A> out, Queue<Q> kept, BiConsumer<Q, StreamObserver<A>> next) {
    return new StreamObserver<>() {
      @Override
      public void onNext(Q request) {
        kept.add(request);
        next.accept(request, out);
      }

      @Override
      public void onError(Throwable lost) {}

      @Override
      public void onCompleted() {
        out.onCompleted();
      }
    };
  }

  private final class Service extends FilaServiceGrpc.FilaServiceImplBase {
    @Override
    public void describe(DescribeRequest request, StreamObserver<DescribeResponse> out) {
      describe.accept(request, out);
    }

    @Override
    public StreamObserver<EnqueueBatchRequest> enqueueStream(StreamObserver<EnqueueBatchResponse> out) {
      return stream(out, batches, (request, to) -> enqueue.accept(request, to));
    }

    @Override
    public StreamObserver<SettleRequest> settle(StreamObserver<SettleResponse> out) {
      return stream(out, settled, (request, to) -> settle.accept(request, to));
    }

    @Override
    public StreamObserver<ConsumeRequest> consume(StreamObserver<ConsumeResponse> out) {
      return stream(out, consumed, (request, to) -> consume.accept(request, to));
    }
  }

  private final class Admin extends FilaAdminGrpc.FilaAdminImplBase {
    @Override
    public void listQueues(ListQueuesRequest request, StreamObserver<ListQueuesResponse> out) {
      listQueues.accept(request, out);
    }

    @Override
    public void listConfig(ListConfigRequest request, StreamObserver<ListConfigResponse> out) {
      listConfig.accept(request, out);
    }

    @Override
    public void peek(PeekRequest request, StreamObserver<PeekResponse> out) {
      peek.accept(request, out);
    }
  }
}
