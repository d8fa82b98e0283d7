/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.ConsumeRequest;
import io.fila.v1.ConsumeResponse;
import io.fila.v1.FilaServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class StreamCallTest {
  private final Loop loop = new Loop();
  private final Wire wire = new Wire();
  private final List<String> events = new ArrayList<>();
  private final CompletableFuture<Void> over = new CompletableFuture<>();
  private boolean room = true;
  private StreamCall<ConsumeRequest, ConsumeResponse> call;

  /** A channel of one call. */
  private static final class Wire extends Channel {
    private final AtomicInteger requested = new AtomicInteger();
    private ClientCall.Listener<ConsumeResponse> listener;

    @Override
    public String authority() {
      return "";
    }

    @Override
    @SuppressWarnings("unchecked")
    public <Q, A> ClientCall<Q, A> newCall(MethodDescriptor<Q, A> method, CallOptions options) {
      return new ClientCall<>() {
        @Override
        public void start(Listener<A> given, Metadata headers) {
          listener = (Listener<ConsumeResponse>) given;
        }

        @Override
        public void request(int messages) {
          requested.addAndGet(messages);
        }

        @Override
        public void cancel(String message, Throwable cause) {}

        @Override
        public void halfClose() {}

        @Override
        public void sendMessage(Q message) {}
      };
    }
  }

  @BeforeEach
  void start() throws Exception {
    onLoop(
        () ->
            call =
                StreamCall.start(
                    loop, wire, null, FilaServiceGrpc.getConsumeMethod(), CallOptions.DEFAULT, new Events()));
  }

  @AfterEach
  void end() throws Exception {
    loop.close();
  }

  private final class Events implements StreamCall.Events<ConsumeResponse> {
    @Override
    public void opened(Metadata headers) {
      events.add("opened");
    }

    @Override
    public boolean message(ConsumeResponse response) {
      events.add(response.getMessages(0).getId());
      return room;
    }

    @Override
    public void ended(Status status, Metadata trailers) {
      events.add("ended");
      over.complete(null);
    }
  }

  private void onLoop(Runnable task) throws Exception {
    CompletableFuture<Void> done = new CompletableFuture<>();
    loop.later(
        () -> {
          task.run();
          done.complete(null);
        });
    done.get();
  }

  private static ConsumeResponse response(String id) {
    return FakeBroker.delivery("1", id);
  }

  @Test
  void aResponseIsAskedForWhenTheOneBeforeWasTaken() throws Exception {
    assertEquals(1, wire.requested.get());
    onLoop(() -> wire.listener.onMessage(response("a")));
    assertEquals(2, wire.requested.get());
  }

  @Test
  void withoutRoomNoMoreIsAskedForUntilThereIs() throws Exception {
    room = false;
    onLoop(() -> wire.listener.onMessage(response("a")));
    assertEquals(1, wire.requested.get());
    onLoop(call::more);
    onLoop(call::more);
    assertEquals(2, wire.requested.get());
  }

  @Test
  void whatHappensOnOtherThreadsKeepsItsOrder() throws Exception {
    CountDownLatch busy = new CountDownLatch(1);
    CountDownLatch given = new CountDownLatch(1);
    loop.later(
        () -> {
          busy.countDown();
          try {
            given.await();
          } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
          }
          wire.listener.onMessage(response("second"));
          wire.listener.onClose(Status.OK, new Metadata());
        });
    busy.await();
    wire.listener.onHeaders(new Metadata());
    wire.listener.onMessage(response("first"));
    given.countDown();
    over.get();
    assertEquals(List.of("opened", "first", "second", "ended"), events);
  }

  @Test
  void nothingHappensAfterACancel() throws Exception {
    onLoop(
        () -> {
          call.cancel();
          wire.listener.onMessage(response("a"));
          wire.listener.onClose(Status.CANCELLED, new Metadata());
        });
    onLoop(() -> {});
    assertEquals(List.of(), events);
  }

  @Test
  void moreThanTheCreditOfAConsumerIsNotRead() throws Exception {
    try (FakeBroker broker = new FakeBroker(); FilaClient client = broker.client()) {
      ConsumeStream stream = client.consume("q", 2).stream();
      assertTrue(stream.deliver(FakeBroker.delivery("1", "a", "b").getMessagesList()));
      assertFalse(stream.deliver(FakeBroker.delivery("1", "c", "d").getMessagesList()));
    }
  }

  @Test
  void whatABrokerSendsBeyondTheCreditIsReadWhenThereIsRoom() throws Exception {
    try (FakeBroker broker = new FakeBroker(); FilaClient client = broker.client()) {
      broker.consume =
          (request, out) -> {
            if (!request.getQueue().isEmpty()) {
              for (int each = 0; each < 100; each++) {
                out.onNext(FakeBroker.delivery("1", "a" + each, "b" + each, "c" + each));
              }
            }
          };
      FilaConsumer consumer = client.consume("q", 2);
      for (int each = 0; each < 100; each++) {
        assertEquals("a" + each, consumer.take().id());
        assertTrue(consumer.stream().prefetched() <= 2 + 3, "more than the credit and a response");
        assertEquals("b" + each, consumer.take().id());
        assertEquals("c" + each, consumer.take().id());
      }
      consumer.close();
    }
  }
}
