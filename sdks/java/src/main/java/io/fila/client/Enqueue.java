/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import io.fila.v1.EnqueueRequest;

/** One message of a caller. */
final class Enqueue extends Waiter<EnqueueResult> {
  final EnqueueRequest request;
  final int bytes;

  /** How much of the buffer it takes. */
  int room;

  Enqueue(EnqueueRequest request, long deadline) {
    super(deadline);
    this.request = request;
    this.bytes = request.getSerializedSize();
  }
}
