/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.grpc.MethodDescriptor;
import java.time.Duration;
import java.util.function.Function;

/** How calls of operators are made: again or only once, or page by page. */
final class AdminCalls {
  private final Core core;
  private final Duration timeout;

  AdminCalls(Core core, Duration timeout) {
    this.core = core;
    this.timeout = timeout;
  }

  /** Of a call that changes nothing twice. */
  <Q, A> A repeatable(MethodDescriptor<Q, A> method, Q request, String queue) throws FilaException {
    return core.call(method, request, queue, true, Core.deadline(timeout));
  }

  <Q, A> A once(MethodDescriptor<Q, A> method, Q request, String queue) throws FilaException {
    return core.call(method, request, queue, false, Core.deadline(timeout));
  }

  /**
   * All pages of a list, within the time of one call. Pages that lead to themselves would have no end.
   *
   * @param request of the page at a cursor
   * @param taken takes a page and returns the cursor of the next one; empty at the end
   */
  <Q, A> void pages(
      MethodDescriptor<Q, A> method, String queue, Function<String, Q> request, Function<A, String> taken)
      throws FilaException {
    long deadline = Core.deadline(timeout);
    String cursor = "";
    do {
      String next = taken.apply(core.call(method, request.apply(cursor), queue, true, deadline));
      if (!next.isEmpty() && next.equals(cursor)) {
        throw Errors.unexpected("a page that is followed by itself", null);
      }
      cursor = next;
    } while (!cursor.isEmpty());
  }
}
