// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import "sync/atomic"

// state of a pending item: who decides what its caller is told.
const (
	stateWaiting int32 = iota
	stateAbandoned
	stateAnswered
)

// pending is what one caller waits for: an answer of the broker, or the end of its context, whichever is first.
type pending struct {
	state atomic.Int32
	sent  atomic.Bool
	done  chan struct{}
}

// finished is closed when there is an answer.
func (p *pending) finished() <-chan struct{} { return p.done }

// wasSent: the broker may have it.
func (p *pending) wasSent() bool { return p.sent.Load() }

// waiting: its caller has not gone, and has no answer.
func (p *pending) waiting() bool { return p.state.Load() == stateWaiting }

// abandon: its caller goes. It returns false when there is an answer already.
func (p *pending) abandon() bool { return p.state.CompareAndSwap(stateWaiting, stateAbandoned) }

// decide returns true to whoever may write the answer. That one closes done.
func (p *pending) decide() bool { return p.state.Swap(stateAnswered) != stateAnswered }
