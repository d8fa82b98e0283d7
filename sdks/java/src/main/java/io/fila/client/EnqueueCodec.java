/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.EnqueueBatchRequest;
import io.fila.v1.EnqueueBatchResponse;
import io.fila.v1.Error;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** Numbers the batches of one producer, and splits the answers. */
final class EnqueueCodec implements BatchStream.Codec<Enqueue, EnqueueBatchRequest, EnqueueBatchResponse> {
  private static final int MAX_MESSAGES = 1000;
  private static final int MAX_BYTES = 1 << 20;

  /** Less than the ten minutes for which the broker remembers a producer that is silent. */
  static final long REPEATABLE_NANOS = TimeUnit.MINUTES.toNanos(9);

  private final String producerId;
  private final long repeatableNanos;
  private long sequence;

  EnqueueCodec(String producerId, long repeatableNanos) {
    this.producerId = producerId;
    this.repeatableNanos = repeatableNanos;
  }

  @Override
  public Batch<Enqueue, EnqueueBatchRequest> makeBatch(Deque<Enqueue> gathered) {
    List<Enqueue> taken = new ArrayList<>();
    EnqueueBatchRequest.Builder request = EnqueueBatchRequest.newBuilder();
    int bytes = 0;
    for (Enqueue each = gathered.peekFirst(); each != null; each = gathered.peekFirst()) {
      if (each.waits()) {
        boolean full = bytes + each.bytes > MAX_BYTES || taken.size() == MAX_MESSAGES;
        if (full && !taken.isEmpty()) {
          break;
        }
        bytes += each.bytes;
        taken.add(each);
        request.addMessages(each.request);
      }
      gathered.pollFirst();
    }
    if (taken.isEmpty()) {
      return null;
    }
    sequence++;
    request.setProducerId(producerId).setSequence(sequence);
    return new Batch<>(request.build(), taken, sequence, bytes);
  }

  @Override
  public long repeatableNanos() {
    return repeatableNanos;
  }

  @Override
  public long sequence(EnqueueBatchResponse answer) {
    return answer.getSequence();
  }

  @Override
  public Error refusal(EnqueueBatchResponse answer) {
    return answer.hasError() ? answer.getError() : null;
  }

  @Override
  public void answer(
      Batch<Enqueue, EnqueueBatchRequest> batch,
      EnqueueBatchResponse answer,
      BiConsumer<Enqueue, FilaException> refused) {
    if (answer.getResultsCount() != batch.waiters.size()) {
      throw new IllegalStateException(answer.getResultsCount() + " results for " + batch.waiters.size() + " messages");
    }
    if (answer.getResultsList().stream().anyMatch(each -> !each.hasError() && each.getMessageId().isEmpty())) {
      throw new IllegalStateException("a result that is neither an id nor an error");
    }
    for (int index = 0; index < batch.waiters.size(); index++) {
      Enqueue waiter = batch.waiters.get(index);
      io.fila.v1.EnqueueResult result = answer.getResults(index);
      if (result.hasError()) {
        refused.accept(waiter, Errors.of(result.getError()));
      } else {
        // A batch that was sent again is a duplicate of itself. That is no news for a message without a key.
        boolean keyed = !waiter.request.getDedupKey().isEmpty();
        boolean duplicate = result.getDuplicate() && (keyed || !batch.resent);
        waiter.future.complete(new EnqueueResult(result.getMessageId(), duplicate, null));
      }
    }
  }
}
