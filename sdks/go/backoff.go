// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = 20 * time.Millisecond
	backoffMost  = time.Second
	// askedMost bounds what a broker can ask for: a wrong answer must not hold the client for hours.
	askedMost = 30 * time.Second
)

// backoff doubles from 20 ms to 1 s. Its jitter keeps clients from coming back at the same moment.
type backoff struct{ wait time.Duration }

func (b *backoff) reset() { b.wait = 0 }

func (b *backoff) next() time.Duration {
	b.wait = min(max(2*b.wait, backoffFirst), backoffMost)
	return time.Duration(float64(b.wait) * (0.5 + rand.Float64()/2)) //nolint:gosec // it is no secret
}

// after is the next wait, and at least as long as the broker asks for.
func (b *backoff) after(asked time.Duration) time.Duration {
	return max(b.next(), min(asked, askedMost))
}

// pause waits; it returns false when the context or the client ended first, or the context would end first.
func (c *Client) pause(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-c.over:
		return false
	}
}
