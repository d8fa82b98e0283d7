/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import java.time.Duration;
import java.util.Objects;

/** Checks of what callers say. What no call could have meant is refused where it was said. */
final class Arguments {
  /** As good as any longer time, and no overflow when it is added to a clock. */
  static final Duration FOREVER = Duration.ofDays(36_500);

  /** Brokers keep no more of an error text. */
  private static final int MAX_ERROR_CHARACTERS = 1000;

  private Arguments() {}

  /** A text that can be sent as it is: protobuf would put a question mark in the place of half a surrogate pair. */
  static String text(String value, String name) {
    Objects.requireNonNull(value, name);
    for (int at = 0; at < value.length(); at++) {
      if (Character.isSurrogate(value.charAt(at))) {
        if (!Character.isSupplementaryCodePoint(value.codePointAt(at))) {
          throw new IllegalArgumentException(name + " is no Unicode text: it has half a surrogate pair");
        }
        at++;
      }
    }
    return value;
  }

  /** The error text of a settlement, without what a broker would cut off. */
  static String error(String value) {
    Objects.requireNonNull(value, "error");
    if (value.codePointCount(0, value.length()) <= MAX_ERROR_CHARACTERS) {
      return value;
    }
    return value.substring(0, value.offsetByCodePoints(0, MAX_ERROR_CHARACTERS));
  }

  static Duration positive(Duration value, String name) {
    Objects.requireNonNull(value, name);
    if (value.isNegative() || value.isZero()) {
      throw new IllegalArgumentException(name + " must be positive, not " + value);
    }
    return value;
  }

  /** Rounded up, so that a short time is not zero, which often means something else. */
  static long millis(Duration value, String name) {
    Objects.requireNonNull(value, name);
    if (value.isNegative()) {
      throw new IllegalArgumentException(name + " must not be negative, but is " + value);
    }
    return value.compareTo(FOREVER) > 0 ? FOREVER.toMillis() : value.plusNanos(999_999).toMillis();
  }

  /** At most a hundred years, into the future or the past. */
  static long nanos(Duration value) {
    if (value.compareTo(FOREVER) > 0) {
      return FOREVER.toNanos();
    }
    return value.compareTo(FOREVER.negated()) < 0 ? -FOREVER.toNanos() : value.toNanos();
  }
}
