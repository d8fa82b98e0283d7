/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.FilaServiceGrpc;
import io.fila.v1.SettleRequest;
import io.fila.v1.SettleResponse;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Settlements of all threads travel together, on one stream for each member. */
final class Settler {
  private final Loop loop;
  private final Members members;
  private final Map<String, BatchStream<Settle, SettleRequest, SettleResponse>> streams = new ConcurrentHashMap<>();
  private volatile boolean closed;

  Settler(Loop loop, Members members) {
    this.loop = loop;
    this.members = members;
  }

  /** From any thread. The answer is in the future of the waiter. */
  void submit(Settle settle) {
    if (!closed) {
      streams.computeIfAbsent(members.route(settle.queue), this::open).submit(settle);
    }
    if (closed) { // now, or meanwhile: then nobody knew of the stream
      settle.fail(Errors.closed());
    }
  }

  private BatchStream<Settle, SettleRequest, SettleResponse> open(String pin) {
    return new BatchStream<>(
        loop, members, FilaServiceGrpc.getSettleMethod(), new SettleCodec(), pin, this::move);
  }

  private void move(Settle settle, String owner) {
    members.learn(settle.queue, owner);
    submit(settle);
  }

  void close(FilaException error) {
    closed = true;
    streams.values().forEach(stream -> stream.close(error));
  }
}
