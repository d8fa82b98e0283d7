/*
 * Copyright The Fila developers.
 * SPDX-License-Identifier: Apache-2.0
 */
package io.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class CompanyTest {
  private static final long QUIET = Company.QUIET_NANOS;

  private final Company company = new Company();

  /** Ten callers have sent one batch, which was answered at the time 0. */
  @BeforeEach
  void tenAreAnswered() {
    assertFalse(company.isComing(10, 0, -1000));
    assertFalse(company.isComing(0, 10, -1000));
    company.answered(0);
  }

  @Test
  void aCallerThatIsAloneNeverWaits() {
    Company alone = new Company();
    for (int now = 0; now < 5; now++) {
      assertFalse(alone.isComing(1, 0, now));
      assertFalse(alone.isComing(0, 1, now));
      alone.answered(now);
    }
  }

  @Test
  void thoseWhoWereAnsweredAreWaitedFor() {
    assertTrue(company.isComing(1, 0, 1));
    assertTrue(company.isComing(9, 0, 2));
    assertEquals(1, company.missing(9));
    assertFalse(company.isComing(10, 0, 3));
  }

  @Test
  void whileSomeComeTheOthersAreWaitedFor() {
    assertTrue(company.isComing(1, 0, QUIET));
    assertTrue(company.isComing(2, 0, 2 * QUIET));
    assertTrue(company.isComing(2, 0, 3 * QUIET));
    assertFalse(company.isComing(2, 0, 3 * QUIET + 1));
  }

  @Test
  void theLongestTimeIsShort() {
    long step = Company.LONGEST_NANOS / 8;
    for (int came = 1; came <= 8; came++) {
      assertTrue(company.isComing(came, 0, came * step));
    }
    assertFalse(company.isComing(9, 0, Company.LONGEST_NANOS + 1));
  }

  @Test
  void whoeverDidNotComeIsNotWaitedForAgain() {
    assertTrue(company.isComing(4, 0, 1));
    assertFalse(company.isComing(4, 0, QUIET + 2));
    company.answered(QUIET + 3);
    assertFalse(company.isComing(4, 0, QUIET + 3));
  }

  @Test
  void whoeverComesLateIsWaitedForTheNextTime() {
    assertTrue(company.isComing(4, 0, 1));
    assertFalse(company.isComing(4, 0, QUIET + 2)); // is sent
    assertFalse(company.isComing(6, 4, QUIET + 2)); // the other six
    company.answered(QUIET + 3);
    assertTrue(company.isComing(9, 0, QUIET + 3));
    assertFalse(company.isComing(10, 0, QUIET + 3));
  }

  @Test
  void nobodyIsWaitedForLongAfterAnAnswer() {
    assertFalse(company.isComing(1, 0, Company.LONGEST_NANOS + 1));
  }

  @Test
  void noMoreThanAGoodBatchIsWaitedFor() {
    company.isComing(5 * Company.MOST, 0, 0);
    company.answered(0);
    assertFalse(company.isComing(Company.MOST, 0, 0));
  }

  @Test
  void withABatchUnderWayTheWindowDecides() {
    assertFalse(company.isComing(1, 1, 1));
  }
}
