/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.CreateQueueRequest;
import io.fila.v1.DeleteConfigRequest;
import io.fila.v1.DeleteQueueRequest;
import io.fila.v1.ExplainRequest;
import io.fila.v1.ExplainResponse;
import io.fila.v1.FilaAdminGrpc;
import io.fila.v1.GetConfigRequest;
import io.fila.v1.GetStatsRequest;
import io.fila.v1.GetStatsResponse;
import io.fila.v1.ListConfigRequest;
import io.fila.v1.ListQueuesRequest;
import io.fila.v1.MessageFilter;
import io.fila.v1.PauseQueueRequest;
import io.fila.v1.PeekRequest;
import io.fila.v1.PeekResponse;
import io.fila.v1.PeekedMessage;
import io.fila.v1.PurgeRequest;
import io.fila.v1.PurgeResponse;
import io.fila.v1.QueueConfig;
import io.fila.v1.QueueSummary;
import io.fila.v1.RedriveRequest;
import io.fila.v1.RedriveResponse;
import io.fila.v1.ResumeQueueRequest;
import io.fila.v1.SetConfigRequest;
import io.fila.v1.UpdateQueueRequest;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Calls of operators: queues, runtime configuration, throttles and dead letters. Settings and figures are the messages
 * of the contract, package {@code io.fila.v1}.
 *
 * <p>All methods throw {@link FilaException}: {@link QueueNotFoundException} for a queue that does not exist,
 * {@link PermissionDeniedException} for what the key does not allow, {@link UnavailableException} or
 * {@link FilaTimeoutException} when there is no answer in time.
 */
public final class FilaAdmin {
  private static final String THROTTLE = "throttle.";

  /** A page of a list, and how much one call moves or removes. */
  private static final int PAGE = 500;

  private final AdminCalls calls;

  FilaAdmin(Core core, Duration timeout) {
    calls = new AdminCalls(core, timeout);
  }

  /**
   * Creates a queue with the settings of the broker, and its dead-letter queue.
   *
   * @param queue the name
   * @throws QueueAlreadyExistsException if there is one of that name
   * @throws FilaException as for the class
   */
  public void createQueue(String queue) throws FilaException {
    createQueue(queue, QueueConfig.getDefaultInstance());
  }

  /**
   * Creates a queue and its dead-letter queue.
   *
   * @param queue the name
   * @param config its settings; what is not set is as the broker has it
   * @throws QueueAlreadyExistsException if there is one of that name
   * @throws FilaException as for the class
   */
  public void createQueue(String queue, QueueConfig config) throws FilaException {
    CreateQueueRequest request =
        CreateQueueRequest.newBuilder().setName(name(queue)).setConfig(checked(config)).build();
    calls.once(FilaAdminGrpc.getCreateQueueMethod(), request, queue);
  }

  /**
   * Changes settings of a queue.
   *
   * @param queue the queue
   * @param config what to change; what is not set stays
   * @return all settings, as they are now
   * @throws FilaException as for the class
   */
  public QueueConfig updateQueue(String queue, QueueConfig config) throws FilaException {
    UpdateQueueRequest request =
        UpdateQueueRequest.newBuilder().setQueue(name(queue)).setConfig(checked(config)).build();
    return calls.repeatable(FilaAdminGrpc.getUpdateQueueMethod(), request, queue).getConfig();
  }

  /**
   * Deletes a queue with all its messages, and its dead-letter queue.
   *
   * @param queue the queue
   * @param force also if it has messages
   * @return how many messages were deleted
   * @throws FailedPreconditionException if it has messages and {@code force} is not set
   * @throws FilaException as for the class
   */
  public long deleteQueue(String queue, boolean force) throws FilaException {
    DeleteQueueRequest request = DeleteQueueRequest.newBuilder().setQueue(name(queue)).setForce(force).build();
    return calls.once(FilaAdminGrpc.getDeleteQueueMethod(), request, queue).getMessagesDeleted();
  }

  /**
   * Lists all queues, dead-letter queues included, within the time of one call.
   *
   * @return the queues of all pages
   * @throws FilaException as for the class
   */
  public List<QueueSummary> listQueues() throws FilaException {
    List<QueueSummary> all = new ArrayList<>();
    calls.pages(
        FilaAdminGrpc.getListQueuesMethod(),
        "",
        cursor -> ListQueuesRequest.newBuilder().setLimit(PAGE).setCursor(cursor).build(),
        page -> {
          all.addAll(page.getQueuesList());
          return page.getCursor();
        });
    return all;
  }

  /**
   * Figures of a queue.
   *
   * @param queue the queue
   * @return what the contract has
   * @throws FilaException as for the class
   */
  public GetStatsResponse stats(String queue) throws FilaException {
    GetStatsRequest request = GetStatsRequest.newBuilder().setQueue(name(queue)).build();
    return calls.repeatable(FilaAdminGrpc.getGetStatsMethod(), request, queue);
  }

  /**
   * Stops delivery of a queue. Messages are still taken.
   *
   * @param queue the queue
   * @throws FilaException as for the class
   */
  public void pauseQueue(String queue) throws FilaException {
    PauseQueueRequest request = PauseQueueRequest.newBuilder().setQueue(name(queue)).build();
    calls.repeatable(FilaAdminGrpc.getPauseQueueMethod(), request, queue);
  }

  /**
   * Goes on with delivery of a queue.
   *
   * @param queue the queue
   * @throws FilaException as for the class
   */
  public void resumeQueue(String queue) throws FilaException {
    ResumeQueueRequest request = ResumeQueueRequest.newBuilder().setQueue(name(queue)).build();
    calls.repeatable(FilaAdminGrpc.getResumeQueueMethod(), request, queue);
  }

  /**
   * Sets an entry of the runtime configuration.
   *
   * @param key its name
   * @param value its value
   * @throws InvalidArgumentException if the broker knows the entry, and the value is not one of it
   * @throws FilaException as for the class
   */
  public void setConfig(String key, String value) throws FilaException {
    SetConfigRequest request =
        SetConfigRequest.newBuilder().setKey(key(key)).setValue(Arguments.text(value, "value")).build();
    calls.repeatable(FilaAdminGrpc.getSetConfigMethod(), request, "");
  }

  /**
   * Reads an entry of the runtime configuration.
   *
   * @param key its name
   * @return its value
   * @throws ConfigNotFoundException if it is not set
   * @throws FilaException as for the class
   */
  public String getConfig(String key) throws FilaException {
    GetConfigRequest request = GetConfigRequest.newBuilder().setKey(key(key)).build();
    return calls.repeatable(FilaAdminGrpc.getGetConfigMethod(), request, "").getValue();
  }

  /**
   * Lists entries of the runtime configuration, within the time of one call.
   *
   * @param prefix how their names begin; empty for all
   * @return the entries of all pages
   * @throws FilaException as for the class
   */
  public Map<String, String> listConfig(String prefix) throws FilaException {
    Map<String, String> all = new LinkedHashMap<>();
    ListConfigRequest.Builder request =
        ListConfigRequest.newBuilder().setPrefix(Arguments.text(prefix, "prefix")).setLimit(PAGE);
    calls.pages(
        FilaAdminGrpc.getListConfigMethod(),
        "",
        cursor -> request.setCursor(cursor).build(),
        page -> {
          page.getEntriesList().forEach(entry -> all.put(entry.getKey(), entry.getValue()));
          return page.getCursor();
        });
    return all;
  }

  /**
   * Removes an entry of the runtime configuration.
   *
   * @param key its name
   * @return whether it was set
   * @throws FilaException as for the class
   */
  public boolean deleteConfig(String key) throws FilaException {
    DeleteConfigRequest request = DeleteConfigRequest.newBuilder().setKey(key(key)).build();
    return calls.repeatable(FilaAdminGrpc.getDeleteConfigMethod(), request, "").getExisted();
  }

  /**
   * Limits how fast messages with a throttle key are delivered.
   *
   * @param key the throttle key, such as {@code provider:aws}
   * @param perSecond how many a second
   * @param burst how many at once after a pause
   * @throws IllegalArgumentException if a number is not finite
   * @throws FilaException as for the class
   */
  public void setThrottle(String key, double perSecond, double burst) throws FilaException {
    setConfig(THROTTLE + key(key), "rate=" + plain(perSecond) + ",burst=" + plain(burst));
  }

  /**
   * Removes the limit of a throttle key.
   *
   * @param key the throttle key
   * @return whether there was one
   * @throws FilaException as for the class
   */
  public boolean removeThrottle(String key) throws FilaException {
    return deleteConfig(THROTTLE + key(key));
  }

  /**
   * Looks at the oldest messages of a queue, without their payloads, within the time of one call.
   *
   * @param queue the queue, which may be a dead-letter queue
   * @param limit the most messages
   * @return the messages
   * @throws IllegalArgumentException if the limit is not positive
   * @throws FilaException as for the class
   */
  public List<PeekedMessage> peek(String queue, int limit) throws FilaException {
    if (limit < 1) {
      throw new IllegalArgumentException("limit must be at least 1, not " + limit);
    }
    List<PeekedMessage> found = new ArrayList<>();
    PeekRequest.Builder request = PeekRequest.newBuilder().setQueue(name(queue));
    calls.pages(
        FilaAdminGrpc.getPeekMethod(),
        queue,
        cursor -> request.setLimit(Math.min(limit - found.size(), PAGE)).setCursor(cursor).build(),
        page -> {
          found.addAll(page.getMessagesList());
          return found.size() < limit ? page.getCursor() : "";
        });
    return found.size() > limit ? found.subList(0, limit) : found;
  }

  /**
   * Looks at messages: filtered, in the order and with the part of the payload that the request says.
   *
   * @param request as the contract has it
   * @return a page; its cursor is for the next one
   * @throws FilaException as for the class
   */
  public PeekResponse peek(PeekRequest request) throws FilaException {
    Objects.requireNonNull(request, "request");
    return calls.repeatable(FilaAdminGrpc.getPeekMethod(), request, request.getQueue());
  }

  /**
   * Moves all dead letters back to their queue.
   *
   * @param deadLetterQueue the dead-letter queue
   * @return how many were moved
   * @throws FilaException as for the class
   */
  public long redrive(String deadLetterQueue) throws FilaException {
    return redrive(deadLetterQueue, MessageFilter.getDefaultInstance());
  }

  /**
   * Moves some dead letters back to their queue.
   *
   * @param deadLetterQueue the dead-letter queue
   * @param filter which ones
   * @return how many were moved
   * @throws FilaException as for the class; some may have been moved then
   */
  public long redrive(String deadLetterQueue, MessageFilter filter) throws FilaException {
    RedriveRequest.Builder request =
        RedriveRequest.newBuilder()
            .setDlqQueue(Arguments.text(deadLetterQueue, "deadLetterQueue"))
            .setFilter(Objects.requireNonNull(filter, "filter"))
            .setBounded(true)
            .setCount(PAGE);
    long moved = 0;
    RedriveResponse step;
    do {
      step = calls.once(FilaAdminGrpc.getRedriveMethod(), request.build(), deadLetterQueue);
      moved += step.getRedriven();
      request.setCursor(step.getCursor());
    } while (!step.getCursor().isEmpty());
    return moved;
  }

  /**
   * Removes messages for good. Leased ones stay.
   *
   * @param queue the queue
   * @param filter which ones
   * @param anyQueue whether it may be another queue than a dead-letter queue
   * @return how many were removed
   * @throws FilaException as for the class; some may have been removed then
   */
  public long purge(String queue, MessageFilter filter, boolean anyQueue) throws FilaException {
    PurgeRequest.Builder request =
        PurgeRequest.newBuilder()
            .setQueue(name(queue))
            .setFilter(Objects.requireNonNull(filter, "filter"))
            .setAnyQueue(anyQueue)
            .setBounded(true)
            .setCount(PAGE);
    long removed = 0;
    PurgeResponse step;
    do {
      step = calls.once(FilaAdminGrpc.getPurgeMethod(), request.build(), queue);
      removed += step.getPurged();
      request.setCursor(step.getCursor());
    } while (!step.getCursor().isEmpty());
    return removed;
  }

  /**
   * Asks why the next message of a queue waits.
   *
   * @param queue the queue
   * @return the reasons, the main one first
   * @throws MessageNotFoundException if the queue is empty
   * @throws FilaException as for the class
   */
  public ExplainResponse explain(String queue) throws FilaException {
    return explain(ExplainRequest.newBuilder().setQueue(name(queue)).build());
  }

  /**
   * Asks why a message waits.
   *
   * @param queue the queue
   * @param messageId the message
   * @return the reasons, the main one first
   * @throws MessageNotFoundException if it is not there
   * @throws FilaException as for the class
   */
  public ExplainResponse explain(String queue, String messageId) throws FilaException {
    String id = Arguments.text(messageId, "messageId");
    return explain(ExplainRequest.newBuilder().setQueue(name(queue)).setMessageId(id).build());
  }

  private ExplainResponse explain(ExplainRequest request) throws FilaException {
    return calls.repeatable(FilaAdminGrpc.getExplainMethod(), request, request.getQueue());
  }

  private static String name(String queue) {
    return Arguments.text(queue, "queue");
  }

  private static String key(String key) {
    return Arguments.text(key, "key");
  }

  private static QueueConfig checked(QueueConfig config) {
    return Objects.requireNonNull(config, "config");
  }

  private static String plain(double number) {
    if (!Double.isFinite(number)) {
      throw new IllegalArgumentException("a throttle has finite numbers, not " + number);
    }
    return BigDecimal.valueOf(number).stripTrailingZeros().toPlainString();
  }
}
