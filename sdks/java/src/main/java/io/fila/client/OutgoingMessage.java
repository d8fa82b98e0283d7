/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import com.google.protobuf.ByteString;
import io.fila.v1.EnqueueRequest;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/** A message to be enqueued, with everything that can be said of it. */
public final class OutgoingMessage {
  private final EnqueueRequest request;

  private OutgoingMessage(EnqueueRequest request) {
    this.request = request;
  }

  /**
   * Begins a message.
   *
   * @param queue the queue that it goes to
   * @return a builder
   */
  public static Builder to(String queue) {
    return new Builder(queue);
  }

  EnqueueRequest request() {
    return request;
  }

  /** Collects what is said of a message. */
  public static final class Builder {
    private final EnqueueRequest.Builder request = EnqueueRequest.newBuilder();

    private Builder(String queue) {
      request.setQueue(Arguments.text(queue, "queue"));
    }

    /**
     * Adds a header.
     *
     * @param name the name
     * @param value the value
     * @return this builder
     */
    public Builder header(String name, String value) {
      request.putHeaders(Arguments.text(name, "name of a header"), Arguments.text(value, "value of a header"));
      return this;
    }

    /**
     * Adds headers.
     *
     * @param headers names and values
     * @return this builder
     */
    public Builder headers(Map<String, String> headers) {
      Objects.requireNonNull(headers, "headers").forEach(this::header);
      return this;
    }

    /**
     * Sets the payload.
     *
     * @param payload is copied
     * @return this builder
     */
    public Builder payload(byte[] payload) {
      request.setPayload(ByteString.copyFrom(Objects.requireNonNull(payload, "payload")));
      return this;
    }

    /**
     * Sets the payload to a text in UTF-8.
     *
     * @param payload the text
     * @return this builder
     */
    public Builder payload(String payload) {
      return payload(Arguments.text(payload, "payload").getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Has the message wait before it is delivered.
     *
     * @param delay from when the broker has it
     * @return this builder
     */
    public Builder delay(Duration delay) {
      request.setDelayMs(Arguments.millis(delay, "delay"));
      return this;
    }

    /**
     * Orders messages of one fairness key.
     *
     * @param priority from 0, the most urgent, to 255; 5 if it is not set
     * @return this builder
     */
    public Builder priority(int priority) {
      request.setPriority(priority);
      return this;
    }

    /**
     * Has the broker take only one message with this key within the dedup window of the queue.
     *
     * @param key the key
     * @return this builder
     */
    public Builder dedupKey(String key) {
      request.setDedupKey(Arguments.text(key, "key"));
      return this;
    }

    /**
     * Ends the message.
     *
     * @return the message
     */
    public OutgoingMessage build() {
      return new OutgoingMessage(request.build());
    }
  }
}
