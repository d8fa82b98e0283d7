/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fila.v1.Error;
import io.fila.v1.ErrorKind;
import io.grpc.Metadata;
import io.grpc.Status;
import org.junit.jupiter.api.Test;

class ErrorsTest {
  @Test
  void everyKindOfTheContractHasAnException() {
    for (ErrorKind kind : ErrorKind.values()) {
      if (kind != ErrorKind.UNRECOGNIZED && kind.getNumber() != 0) {
        FilaException made = Errors.of(Error.newBuilder().setKind(kind).setMessage("text").build());
        assertEquals("ERROR_KIND_" + made.kind(), kind.name());
        assertEquals("text", made.getMessage());
      }
    }
  }

  @Test
  void anUnknownKindGoesByItsStatus() {
    FilaException made = Errors.of(Error.newBuilder().setKindValue(999).setCode(8).setRetryable(true).build());
    assertInstanceOf(OverloadedException.class, made);
    assertTrue(made.retryable());
  }

  @Test
  void aStatusWithoutDetailsIsALostConnection() {
    for (Status status : new Status[] {Status.UNAVAILABLE, Status.INTERNAL, Status.UNKNOWN, Status.CANCELLED}) {
      assertTrue(Errors.wasLost(Errors.of(status, new Metadata())));
    }
  }

  @Test
  void anErrorKeepsItsTypeInTheThreadOfTheCaller() {
    FilaException made = Errors.raisedHere(Errors.of(Error.newBuilder().setKindValue(6).setMessage("m").build()));
    assertInstanceOf(QueueNotFoundException.class, made);
    assertInstanceOf(QueueNotFoundException.class, made.getCause());
  }

  @Test
  void backoffDoublesToASecondAndKeepsWhatTheBrokerAsksFor() {
    Backoff backoff = new Backoff();
    assertTrue(backoff.nextWaitMs(0) <= 20);
    for (int each = 0; each < 20; each++) {
      assertTrue(backoff.nextWaitMs(0) <= 1000);
    }
    assertEquals(5000, backoff.nextWaitMs(5000));
  }
}
