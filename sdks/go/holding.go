// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// extendTimes is how often a lease is extended within the visibility timeout.
	extendTimes = 3
	// extendEvery is the shortest time between two extensions, whatever visibility timeout the broker tells.
	extendEvery = 10 * time.Millisecond
)

// holding has the messages that one consumer was delivered and that are not settled, by lease, and extends their
// leases. It outlives its consumer: what the program was handed stays its own after Stop.
type holding struct {
	client *Client
	queue  string

	mu         sync.Mutex
	leases     map[string]*lease
	under      map[string]string // the lease under which a message was delivered last
	visibility time.Duration
	ended      bool // nothing more will be delivered
	changed    chan struct{}
}

type lease struct {
	ids map[string]struct{}
	// seen: a turn of the extension has passed it. New leases are left out once: they have two more chances.
	seen bool
}

func newHolding(c *Client, queue string) *holding {
	return &holding{client: c, queue: queue, leases: map[string]*lease{}, under: map[string]string{}, changed: make(chan struct{}, 1)}
}

func (h *holding) add(messages []*ConsumeMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, each := range messages {
		of := h.leases[each.LeaseID]
		if of == nil {
			of = &lease{ids: make(map[string]struct{}, len(messages))}
			h.leases[each.LeaseID] = of
		}
		of.ids[each.ID] = struct{}{}
		h.under[each.ID] = each.LeaseID
	}
}

func (h *holding) forget(leaseID, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(leaseID, id)
}

func (h *holding) forgetAll(messages []*ConsumeMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, each := range messages {
		h.drop(each.LeaseID, each.ID)
	}
}

func (h *holding) forgetAny(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if leaseID, found := h.under[id]; found {
		h.drop(leaseID, id)
	}
}

func (h *holding) drop(leaseID, id string) {
	of := h.leases[leaseID]
	if of == nil {
		return
	}
	delete(of.ids, id)
	if h.under[id] == leaseID {
		delete(h.under, id)
	}
	if len(of.ids) == 0 {
		delete(h.leases, leaseID)
		if h.ended && len(h.leases) == 0 {
			h.signal()
		}
	}
}

// lasts notes how long leases last.
func (h *holding) lasts(visibility time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if visibility > 0 && visibility != h.visibility {
		h.visibility = visibility
		h.signal()
	}
}

// end: the consumer has ended. The extension goes on while the program holds messages.
func (h *holding) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.signal()
}

func (h *holding) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// turn is how long to wait before the next extension, 0 while nobody knows. over: there is nothing left to extend, ever.
func (h *holding) turn() (wait time.Duration, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended && len(h.leases) == 0 {
		return 0, true
	}
	if h.visibility == 0 {
		return 0, false
	}
	return max(h.visibility/extendTimes, extendEvery), false
}

// due has the messages to extend now.
func (h *holding) due() []settlement {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []settlement
	for leaseID, of := range h.leases {
		if of.seen {
			ids := make([]string, 0, len(of.ids))
			for id := range of.ids {
				ids = append(ids, id)
			}
			due = append(due, settlement{kind: settleExtend, queue: h.queue, lease: leaseID}.inPortions(ids)...)
		}
		of.seen = true
	}
	return due
}

// run extends leases until there is nothing left, or the client is over.
func (h *holding) run() {
	defer h.client.dropHolding(h)
	for {
		wait, over := h.turn()
		if over {
			return
		}
		var tick <-chan time.Time
		var timer *time.Timer
		if wait > 0 {
			timer = time.NewTimer(wait)
			tick = timer.C
		}
		select {
		case <-tick:
			h.extend(wait)
		case <-h.changed:
		case <-h.client.over:
			return
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// extend is given up when the next turn comes. What has expired by then is refused.
func (h *holding) extend(within time.Duration) {
	due := h.due()
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for _, each := range h.client.settleOnce(ctx, h.queue, due...) {
		for id, err := range each.failed {
			if errors.Is(err, ErrMessageNotFound) {
				h.forget(each.lease, id)
			}
		}
	}
}
