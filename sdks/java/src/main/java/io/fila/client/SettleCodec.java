/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.AckGroup;
import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.fila.v1.ExtendGroup;
import io.fila.v1.NackRequest;
import io.fila.v1.SettleFailure;
import io.fila.v1.SettleRequest;
import io.fila.v1.SettleResponse;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;

/**
 * Merges settlements into requests, and splits the answers. An answer names only the failures, by queue and message id.
 * So that it is clear whose failure it is, no batch has the same message twice.
 */
final class SettleCodec implements BatchStream.Codec<Settle, SettleRequest, SettleResponse> {
  private static final int MAX_IDS = 5000;
  private static final int MAX_BYTES = 2 << 20;

  /** A message, or with a lease id the lease of several. */
  private record Name(String queue, String id) {}

  private long sequence;

  @Override
  public Batch<Settle, SettleRequest> makeBatch(Deque<Settle> gathered) {
    List<Settle> taken = new ArrayList<>();
    Set<Name> names = new HashSet<>();
    long bytes = 0;
    for (Settle each = gathered.peekFirst(); each != null; each = gathered.peekFirst()) {
      if (each.waits()) {
        boolean full = names.size() + each.ids.size() > MAX_IDS || bytes + each.bytes > MAX_BYTES;
        if (!taken.isEmpty() && (full || overlaps(names, each))) {
          break;
        }
        bytes += each.bytes;
        for (String id : each.ids) {
          names.add(new Name(each.queue, id));
        }
        taken.add(each);
      }
      gathered.pollFirst();
    }
    if (taken.isEmpty()) {
      return null;
    }
    SettleRequest request = request(taken, ++sequence);
    return new Batch<>(request, taken, sequence, request.getSerializedSize());
  }

  private static boolean overlaps(Set<Name> names, Settle settle) {
    return settle.ids.stream().anyMatch(id -> names.contains(new Name(settle.queue, id)));
  }

  private static SettleRequest request(List<Settle> settles, long sequence) {
    SettleRequest.Builder request = SettleRequest.newBuilder().setSequence(sequence);
    Map<Name, AckGroup.Builder> acks = new LinkedHashMap<>();
    for (Settle each : settles) {
      switch (each.action) {
        case ACK ->
            acks.computeIfAbsent(
                    new Name(each.queue, each.leaseId),
                    name -> AckGroup.newBuilder().setQueue(each.queue).setLeaseId(each.leaseId))
                .addAllMessageIds(each.ids);
        case EXTEND ->
            request.addExtends(
                ExtendGroup.newBuilder()
                    .setQueue(each.queue)
                    .setLeaseId(each.leaseId)
                    .addAllMessageIds(each.ids)
                    .setExtendMs(each.millis));
        default -> each.ids.forEach(id -> request.addNacks(nack(each, id)));
      }
    }
    acks.values().forEach(request::addAcks);
    return request.build();
  }

  private static NackRequest nack(Settle settle, String id) {
    return NackRequest.newBuilder()
        .setQueue(settle.queue)
        .setLeaseId(settle.leaseId)
        .setMessageId(id)
        .setError(settle.error)
        .setDelayMs(settle.millis)
        .setRelease(settle.action == Settle.Action.RELEASE)
        .setDeadLetter(settle.action == Settle.Action.REJECT)
        .build();
  }

  /** For ever: a settlement names its lease. */
  @Override
  public long repeatableNanos() {
    return Long.MAX_VALUE;
  }

  @Override
  public long sequence(SettleResponse answer) {
    return answer.getSequence();
  }

  @Override
  public Error refusal(SettleResponse answer) {
    return answer.hasError() ? answer.getError() : null;
  }

  @Override
  public void answer(
      Batch<Settle, SettleRequest> batch, SettleResponse answer, BiConsumer<Settle, FilaException> refused) {
    if (answer.getFailuresCount() == 0) {
      batch.waiters.forEach(waiter -> waiter.future.complete(Map.of()));
      return;
    }
    Map<Name, Error> failures = new HashMap<>();
    for (SettleFailure failure : answer.getFailuresList()) {
      failures.put(new Name(failure.getQueue(), failure.getMessageId()), failure.getError());
    }
    checkKnown(failures.keySet(), batch.waiters);
    for (Settle waiter : batch.waiters) {
      answer(waiter, failures, refused);
    }
  }

  /** A failure that belongs to nobody would be counted as a success. */
  private static void checkKnown(Set<Name> failed, List<Settle> waiters) {
    Set<Name> unknown = new HashSet<>(failed);
    waiters.forEach(waiter -> waiter.ids.forEach(id -> unknown.remove(new Name(waiter.queue, id))));
    if (!unknown.isEmpty()) {
      throw new IllegalStateException("failures of messages that were not in the request");
    }
  }

  private static void answer(Settle waiter, Map<Name, Error> failures, BiConsumer<Settle, FilaException> refused) {
    Map<String, FilaException> failed = new HashMap<>();
    for (String id : waiter.ids) {
      Error error = failures.get(new Name(waiter.queue, id));
      if (error != null && !wasDone(waiter, error)) {
        failed.put(id, Errors.of(error));
      }
    }
    if (failed.size() == 1 && waiter.ids.size() == 1) {
      refused.accept(waiter, failed.values().iterator().next()); // which may be worth another attempt
    } else {
      waiter.future.complete(failed);
    }
  }

  /** An ack that is sent again and finds the message gone for good was carried out the first time. */
  private static boolean wasDone(Settle waiter, Error error) {
    return waiter.repeated
        && waiter.action == Settle.Action.ACK
        && error.getKind() == ErrorKind.ERROR_KIND_MESSAGE_GONE;
  }
}
