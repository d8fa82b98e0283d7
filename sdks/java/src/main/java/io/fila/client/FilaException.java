/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.time.Duration;

/**
 * The base of all errors of the SDK. Programs go by the class or by {@link #kind()}, people by the text.
 */
public class FilaException extends Exception {
  private static final long serialVersionUID = 1L;

  /** A name of {@code ErrorKind} without its prefix. */
  private final String kind;

  /** Whether the same request may succeed later. */
  private final boolean retryable;

  /** How long to wait at least; zero if the caller chooses. */
  private final long retryAfterMs;

  /** The member of the cluster to ask instead; empty if the broker named none. */
  private final String owner;

  FilaException(Failure failure) {
    super(failure.message(), failure.cause());
    this.kind = failure.kind();
    this.retryable = failure.retryable();
    this.retryAfterMs = failure.retryAfterMs();
    this.owner = failure.owner();
  }

  /**
   * Which refusal it is: a name of {@code ErrorKind} without its prefix, such as {@code QUEUE_NOT_FOUND}.
   * An error of the SDK itself has {@code UNAVAILABLE}, {@code DEADLINE_EXCEEDED}, {@code CANCELLED} or
   * {@code CLOSED}.
   *
   * @return the name of the kind
   */
  public String kind() {
    return kind;
  }

  /**
   * Whether the same request may succeed later, though nobody changes anything.
   *
   * @return true if it may
   */
  public boolean retryable() {
    return retryable;
  }

  /**
   * If retryable: how long to wait at least. Zero means that the caller chooses.
   *
   * @return the least time to wait
   */
  public Duration retryAfter() {
    return Duration.ofMillis(retryAfterMs);
  }

  /** The member of the cluster to ask instead; empty if the broker named none. */
  String owner() {
    return owner;
  }
}
