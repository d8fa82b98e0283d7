/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import com.google.protobuf.Timestamp;
import io.fila.v1.Message;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * A message that a consumer was delivered. Its lease is extended until the message is settled. Settle it once: with
 * {@link #ack()}, {@link #nack(String)}, {@link #release()} or {@link #reject(String)}.
 */
public final class ConsumeMessage {
  private final Core core;
  private final ConsumeStream stream;
  private final Message message;
  private volatile boolean settled;

  ConsumeMessage(Core core, ConsumeStream stream, Message message) {
    this.core = core;
    this.stream = stream;
    this.message = message;
  }

  /**
   * The id that the broker gave the message.
   *
   * @return the id
   */
  public String id() {
    return message.getId();
  }

  /**
   * What the producer has sent as headers.
   *
   * @return the headers, not to be changed
   */
  public Map<String, String> headers() {
    return message.getHeadersMap();
  }

  /**
   * What the producer has sent.
   *
   * @return a copy of the payload
   */
  public byte[] payload() {
    return message.getPayload().toByteArray();
  }

  /**
   * The key under which the message is scheduled.
   *
   * @return the fairness key
   */
  public String fairnessKey() {
    return message.getMetadata().getFairnessKey();
  }

  /**
   * How many attempts failed before this delivery.
   *
   * @return the number of failed attempts
   */
  public int attemptCount() {
    return message.getMetadata().getAttemptCount();
  }

  /**
   * The queue that the message was consumed from.
   *
   * @return the name of the queue
   */
  public String queue() {
    return stream.holdings().queue();
  }

  /**
   * The lease under which this copy was delivered.
   *
   * @return the id of the lease
   */
  public String leaseId() {
    return message.getMetadata().getLeaseId();
  }

  /**
   * When the broker took the message.
   *
   * @return the time
   */
  public Instant enqueuedAt() {
    Timestamp at = message.getTimestamps().getEnqueuedAt();
    return Instant.ofEpochSecond(at.getSeconds(), at.getNanos());
  }

  /**
   * The message as the contract has it, with everything that is not repeated here.
   *
   * @return the message of the contract
   */
  public Message contract() {
    return message;
  }

  /**
   * Removes the message for good. Returns when the broker has confirmed it.
   *
   * @throws MessageNotFoundException if the lease has ended; the message will be, or was, delivered again
   * @throws FilaException if the broker could not be asked in time
   */
  public void ack() throws FilaException {
    settle(Settle.Action.ACK, "", 0);
  }

  /**
   * As {@link #ack()}, without waiting.
   *
   * @return completes when the broker has confirmed it
   */
  public CompletableFuture<Void> ackAsync() {
    return settleAsync(Settle.Action.ACK, "", 0);
  }

  /**
   * Gives the message back, as failed. It is delivered again after the delay of its queue.
   *
   * @param error what went wrong; up to 1,000 characters are kept with the message
   * @throws MessageNotFoundException if the lease has ended
   * @throws FilaException if the broker could not be asked in time
   */
  public void nack(String error) throws FilaException {
    nack(error, Duration.ZERO);
  }

  /**
   * Gives the message back, as failed.
   *
   * @param error what went wrong; up to 1,000 characters are kept with the message
   * @param delay the least time before it is delivered again; zero means what its queue says
   * @throws MessageNotFoundException if the lease has ended
   * @throws FilaException if the broker could not be asked in time
   */
  public void nack(String error, Duration delay) throws FilaException {
    settle(Settle.Action.NACK, Arguments.error(error), Arguments.millis(delay, "delay"));
  }

  /**
   * As {@link #nack(String, Duration)}, without waiting.
   *
   * @param error what went wrong; up to 1,000 characters are kept with the message
   * @param delay the least time before it is delivered again; zero means what its queue says
   * @return completes when the broker has confirmed it
   */
  public CompletableFuture<Void> nackAsync(String error, Duration delay) {
    return settleAsync(Settle.Action.NACK, Arguments.error(error), Arguments.millis(delay, "delay"));
  }

  /**
   * Gives the message back as if nothing had happened: no attempt is counted.
   *
   * @throws MessageNotFoundException if the lease has ended
   * @throws FilaException if the broker could not be asked in time
   */
  public void release() throws FilaException {
    settle(Settle.Action.RELEASE, "", 0);
  }

  /**
   * Sends the message to the dead-letter queue, whatever its queue says.
   *
   * @param error why; up to 1,000 characters are kept with the message
   * @throws MessageNotFoundException if the lease has ended
   * @throws FilaException if the broker could not be asked in time
   */
  public void reject(String error) throws FilaException {
    settle(Settle.Action.REJECT, Arguments.error(error), 0);
  }

  /**
   * Moves the end of the lease. The client does this by itself, in steps of the queue's visibility timeout.
   *
   * @param length from now; zero means the visibility timeout
   * @throws MessageNotFoundException if the lease has ended
   * @throws FilaException if the broker could not be asked in time
   */
  public void extend(Duration length) throws FilaException {
    core.settle(made(Settle.Action.EXTEND, "", Arguments.millis(length, "length")));
  }

  @Override
  public String toString() {
    return "ConsumeMessage[" + queue() + ", " + id() + "]";
  }

  /** Whether the application has begun to settle it. */
  boolean isSettled() {
    return settled;
  }

  /** Delivered alone, because it may have killed its consumers. */
  boolean isIsolated() {
    return message.getMetadata().getIsolationValue() != 0;
  }

  private void settle(Settle.Action action, String error, long millis) throws FilaException {
    core.checkMayWait();
    core.settle(last(action, error, millis));
  }

  private CompletableFuture<Void> settleAsync(Settle.Action action, String error, long millis) {
    return core.settleAsync(last(action, error, millis));
  }

  /** The end of its lease, so that it is extended no longer. */
  private Settle last(Settle.Action action, String error, long millis) {
    settled = true;
    stream.holdings().forget(leaseId(), id());
    return made(action, error, millis);
  }

  private Settle made(Settle.Action action, String error, long millis) {
    return new Settle(
        action, queue(), leaseId(), List.of(id()), error, millis, Core.deadline(stream.timeout()));
  }
}
