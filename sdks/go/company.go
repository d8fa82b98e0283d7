// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import "time"

const (
	// comeBackWithin is how long the next caller may take to come back, and comeBackMost how long all may take.
	comeBackWithin = 100 * time.Microsecond
	comeBackMost   = time.Millisecond
	// companyMost are enough for a batch. For more, the broker would idle.
	companyMost = 256
)

// company is how many callers use a stream at one time. Those that an answer has set free mostly come back at once with
// their next request. They are waited for, so that all of them travel together and not in halves that take turns: a
// batch costs the broker far more than a message in it. It knows no clock.
//
//   - It is what was waiting when the last answer came.
//   - The wait ends when all are back, or when none has come for a moment. Then only those that are there are the company.
//   - A caller that comes when no answer was just given, or that is alone, waits for nobody.
type company struct {
	size  int
	freed time.Time // when the last answer came
	back  int       // how many have come back
	last  time.Time // when the last of them came, or was set free
}

// free notes that an answer has come, when so many were waiting.
func (c *company) free(waiting int, now time.Time) {
	c.size, c.back, c.freed, c.last = min(waiting, companyMost), 0, now, now
}

// awaits tells whether to wait for more than those that are there.
func (c *company) awaits(here int, now time.Time) bool {
	if here >= c.size {
		return false
	}
	come := here > c.back
	late := now.Sub(c.last) > comeBackWithin && (!come || c.back == 0)
	if late || now.Sub(c.freed) > comeBackMost {
		c.size = here
		return false
	}
	if come {
		c.back, c.last = here, now
	}
	return true
}
