/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.DescribeRequest;
import io.fila.v1.DescribeResponse;
import io.fila.v1.FilaServiceGrpc;
import io.grpc.stub.StreamObserver;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/**
 * A client of Fila. Thread-safe, and meant to be shared: calls of many threads travel together in batches. A call that
 * comes alone leaves at once.
 *
 * <pre>{@code
 * try (FilaClient client = FilaClient.builder().address("localhost:5555").build()) {
 *   String id = client.enqueue("orders", Map.of("tenant", "acme"), payload);
 *   try (FilaConsumer consumer = client.consume("orders")) {
 *     ConsumeMessage message = consumer.take();
 *     message.ack();
 *   }
 * }
 * }</pre>
 *
 * <p>It connects when there is something to do, and again with backoff when a connection is lost. Messages are enqueued
 * once, also through lost connections. A thread that is interrupted while it waits gets a {@link CancelledException}
 * and keeps its interrupted status.
 *
 * <p>It has one thread, one more for each observer, and one while futures of callers are completed. All are daemons:
 * they do not keep a program alive.
 */
public final class FilaClient implements AutoCloseable {
  /** The version of this SDK. */
  public static final String VERSION = "0.1.0";

  private static final int DEFAULT_CREDIT = 100;

  private final Core core;
  private final Duration timeout;

  private FilaClient(Core core, Duration timeout) {
    this.core = core;
    this.timeout = timeout;
  }

  Core core() {
    return core;
  }

  /**
   * Begins a client.
   *
   * @return a builder
   */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * The same client with another time limit of calls. It shares everything with this one; closing either closes both.
   *
   * @param limit how long a call may take, with everything that it has to try again
   * @return a view of this client
   * @throws IllegalArgumentException if the limit is not positive
   */
  public FilaClient withTimeout(Duration limit) {
    return new FilaClient(core, Arguments.positive(limit, "limit"));
  }

  /**
   * Enqueues a message. Returns when it is durable.
   *
   * @param queue the queue
   * @param headers its headers
   * @param payload its payload, which is copied
   * @return the id of the message
   * @throws QueueNotFoundException if the queue does not exist
   * @throws QueueFullException if the queue was full until the deadline
   * @throws FilaTimeoutException if there was no answer in time; the message is enqueued once or not at all
   * @throws FilaException if the broker refuses it for another reason
   */
  public String enqueue(String queue, Map<String, String> headers, byte[] payload) throws FilaException {
    return enqueue(OutgoingMessage.to(queue).headers(headers).payload(payload).build()).id();
  }

  /**
   * Enqueues a message. Returns when it is durable.
   *
   * @param message the message
   * @return its id, and whether it was a duplicate
   * @throws FilaException as {@link #enqueue(String, Map, byte[])}
   */
  public EnqueueResult enqueue(OutgoingMessage message) throws FilaException {
    return core.enqueue(made(message));
  }

  /**
   * Enqueues a message without waiting for the answer. Waits only while the buffer of the client is full. What depends
   * on the future runs on the executor of the client: see {@link Builder#executor}.
   *
   * @param message the message
   * @return the result, or a {@link FilaException}; cancelling it gives the message up
   */
  public CompletableFuture<EnqueueResult> enqueueAsync(OutgoingMessage message) {
    return core.enqueueAsync(made(message));
  }

  private Enqueue made(OutgoingMessage message) {
    return made(message, Core.deadline(timeout));
  }

  private Enqueue made(OutgoingMessage message, long deadline) {
    return new Enqueue(core.tracing.inject(Objects.requireNonNull(message, "message").request()), deadline);
  }

  /**
   * Enqueues messages, each of which succeeds or fails by itself.
   *
   * @param messages the messages
   * @return a result for each, in order; see {@link EnqueueResult#error()}
   * @throws CancelledException if the thread is interrupted
   */
  public List<EnqueueResult> enqueueMany(List<OutgoingMessage> messages) throws CancelledException {
    core.checkMayWait();
    long deadline = Core.deadline(timeout);
    Objects.requireNonNull(messages, "messages");
    List<Enqueue> all = messages.stream().map(each -> made(each, deadline)).toList();
    List<CompletableFuture<EnqueueResult>> sent = new ArrayList<>(all.size());
    all.forEach(each -> sent.add(core.begin(each)));
    List<EnqueueResult> results = new ArrayList<>(all.size());
    for (CompletableFuture<EnqueueResult> each : sent) {
      try {
        results.add(core.await(each));
      } catch (CancelledException interrupted) {
        sent.forEach(other -> other.cancel(false));
        throw interrupted;
      } catch (FilaException refused) {
        results.add(new EnqueueResult("", false, refused));
      }
    }
    return results;
  }

  /**
   * Consumes a queue, with at most 100 messages that are delivered and not settled. Does not wait for a connection.
   *
   * @param queue the queue
   * @return the messages
   * @throws FilaException if the client is closed
   */
  public FilaConsumer consume(String queue) throws FilaException {
    return consume(queue, DEFAULT_CREDIT);
  }

  /**
   * Consumes a queue. Does not wait for a connection.
   *
   * @param queue the queue
   * @param maxInFlight the most messages that are delivered and not settled
   * @return the messages
   * @throws FilaException if the client is closed, or the number is not positive
   */
  public FilaConsumer consume(String queue, int maxInFlight) throws FilaException {
    if (maxInFlight < 1) {
      throw Errors.invalid("maxInFlight must be at least 1");
    }
    return new FilaConsumer(core, core.consume(Arguments.text(queue, "queue"), maxInFlight, timeout));
  }

  /**
   * Consumes a queue with an observer, on a thread of its own: one message after the other. The observer settles each
   * message; one for which {@code onNext} throws is nacked. {@code onError} has a {@link FilaException}.
   *
   * @param queue the queue
   * @param observer is told of messages
   * @return for stopping it
   * @throws FilaException if the client is closed
   */
  public FilaConsumer consume(String queue, StreamObserver<ConsumeMessage> observer) throws FilaException {
    return consume(queue, DEFAULT_CREDIT, observer);
  }

  /**
   * As {@link #consume(String, StreamObserver)}.
   *
   * @param queue the queue
   * @param maxInFlight the most messages that are delivered and not settled
   * @param observer is told of messages
   * @return for stopping it
   * @throws FilaException if the client is closed, or the number is not positive
   */
  public FilaConsumer consume(String queue, int maxInFlight, StreamObserver<ConsumeMessage> observer)
      throws FilaException {
    Objects.requireNonNull(observer, "observer");
    FilaConsumer made = consume(queue, maxInFlight);
    made.observe(queue, observer);
    return made;
  }

  /**
   * Removes a message that somebody holds, whatever its lease. {@link ConsumeMessage#ack()} is the safer form.
   *
   * @param queue the queue
   * @param messageId the message
   * @throws MessageNotFoundException if nobody holds it
   * @throws FilaException if the broker could not be asked in time
   */
  public void ack(String queue, String messageId) throws FilaException {
    settle(Settle.Action.ACK, queue, messageId, "");
  }

  /**
   * Gives a message back that somebody holds, as failed. {@link ConsumeMessage#nack(String)} is the safer form.
   *
   * @param queue the queue
   * @param messageId the message
   * @param error what went wrong
   * @throws MessageNotFoundException if nobody holds it
   * @throws FilaException if the broker could not be asked in time
   */
  public void nack(String queue, String messageId, String error) throws FilaException {
    settle(Settle.Action.NACK, queue, messageId, Arguments.error(error));
  }

  private void settle(Settle.Action action, String queue, String id, String error) throws FilaException {
    List<String> ids = List.of(Arguments.text(id, "messageId"));
    core.settle(new Settle(action, Arguments.text(queue, "queue"), "", ids, error, 0, Core.deadline(timeout)));
  }

  /**
   * Asks the server for its version, features and limits.
   *
   * @return what the contract has
   * @throws FilaException if there is no answer in time
   */
  public DescribeResponse describe() throws FilaException {
    DescribeRequest request = DescribeRequest.getDefaultInstance();
    return core.call(FilaServiceGrpc.getDescribeMethod(), request, "", true, Core.deadline(timeout));
  }

  /**
   * Calls about queues, configuration and dead letters.
   *
   * @return a view of this client
   */
  public FilaAdmin admin() {
    return new FilaAdmin(core, timeout);
  }

  /**
   * Ends all calls and consumers, all connections and the threads of the client. Calls that wait get a
   * {@link ClientClosedException}. Messages that are held go back to their queues; stop consumers first to finish them.
   * Waits some seconds for observers and callbacks that are still at work.
   */
  @Override
  public void close() {
    core.close();
  }

  /** Collects how a client is to be. */
  public static final class Builder {
    private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(30);
    private static final int DEFAULT_BUFFER_BYTES = 16 << 20;

    private final List<String> addresses = new ArrayList<>();
    private TlsOptions tls;
    private String apiKey;
    private Path apiKeyFile;
    private Duration timeout = DEFAULT_TIMEOUT;
    private int bufferBytes = DEFAULT_BUFFER_BYTES;
    private Executor executor;

    private Builder() {}

    /**
     * Adds an address. With several, the first that answers is used, and the next one when it is lost.
     *
     * @param address of the form host:port
     * @return this builder
     */
    public Builder address(String address) {
      addresses.add(Objects.requireNonNull(address, "address"));
      return this;
    }

    /**
     * Adds addresses, as {@link #address(String)}.
     *
     * @param several each of the form host:port
     * @return this builder
     */
    public Builder addresses(List<String> several) {
      Objects.requireNonNull(several, "several").forEach(this::address);
      return this;
    }

    /**
     * Secures all connections.
     *
     * @param options whom to trust, and what to show
     * @return this builder
     */
    public Builder tls(TlsOptions options) {
      tls = Objects.requireNonNull(options, "options");
      return this;
    }

    /**
     * Sends an API key, or a token of an identity provider, with every call. Use TLS: otherwise it can be read on the
     * way.
     *
     * @param key the key
     * @return this builder
     */
    public Builder apiKey(String key) {
      apiKey = Objects.requireNonNull(key, "key");
      return this;
    }

    /**
     * Sends the API key in a file. The file is read again when it has changed.
     *
     * @param file has the key in one line
     * @return this builder
     */
    public Builder apiKeyFile(Path file) {
      apiKeyFile = Objects.requireNonNull(file, "file");
      return this;
    }

    /**
     * Sets how long a call may take, with everything that it has to try again. 30 seconds if it is not set.
     *
     * @param limit the time limit
     * @return this builder
     */
    public Builder timeout(Duration limit) {
      timeout = Objects.requireNonNull(limit, "limit");
      return this;
    }

    /**
     * Sets how many bytes of messages may wait for an answer. Each message counts half a KiB more than it has. Callers
     * wait when there are more. 16 MiB if it is not set.
     *
     * @param bytes the limit
     * @return this builder
     */
    public Builder bufferBytes(int bytes) {
      bufferBytes = bytes;
      return this;
    }

    /**
     * Sets where futures such as those of {@link FilaClient#enqueueAsync} are completed, and so what depends on them is
     * run. If it is not set, the client has a thread for it. An executor that runs tasks in the calling thread has them
     * on the thread of the client: there they must not wait for anything.
     *
     * @param callbacks the executor, which the client does not shut down
     * @return this builder
     */
    public Builder executor(Executor callbacks) {
      executor = Objects.requireNonNull(callbacks, "callbacks");
      return this;
    }

    /**
     * Makes the client. Does not wait for a connection.
     *
     * @return the client
     * @throws InvalidArgumentException if something that was set is not valid
     * @throws FilaException if the key cannot be read
     */
    public FilaClient build() throws FilaException {
      if (apiKey != null && apiKeyFile != null) {
        throw Errors.invalid("apiKey and apiKeyFile exclude each other");
      }
      if (timeout.isNegative() || timeout.isZero() || bufferBytes < 1) {
        throw Errors.invalid("timeout and bufferBytes must be positive");
      }
      ApiKey key = apiKey != null ? ApiKey.of(apiKey) : apiKeyFile != null ? ApiKey.in(apiKeyFile) : null;
      return new FilaClient(
          new Core(new Settings(Addresses.checked(addresses), tls, key, bufferBytes, executor)), timeout);
    }
  }
}
