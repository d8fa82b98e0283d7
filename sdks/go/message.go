// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"time"

	"github.com/fila-dev/fila-go/filav1"
)

// ConsumeMessage is a message that was delivered. Its lease is extended until it is settled by Ack, Nack, Release or
// Reject.
type ConsumeMessage struct {
	ID      string
	Queue   string
	Headers map[string]string
	Payload []byte
	// FairnessKey is the key under which the broker has scheduled it.
	FairnessKey string
	// AttemptCount is how many attempts failed before this one.
	AttemptCount uint32
	// LeaseID names this delivery. What is settled under a lease that has ended is refused.
	LeaseID      string
	EnqueuedAt   time.Time
	Weight       uint32
	Priority     uint32
	ThrottleKeys []string
	// Isolated: it is delivered alone, because a consumer died that held it.
	Isolated bool

	client   *Client
	holding  *holding
	reported bool // the broker was told that the program has it, before the program had it
}

func newConsumeMessage(client *Client, holding *holding, queue string, from *filav1.Message) *ConsumeMessage {
	metadata := from.GetMetadata()
	return &ConsumeMessage{
		ID:           from.GetId(),
		Queue:        queue,
		Headers:      from.GetHeaders(),
		Payload:      from.GetPayload(),
		FairnessKey:  metadata.GetFairnessKey(),
		AttemptCount: metadata.GetAttemptCount(),
		LeaseID:      metadata.GetLeaseId(),
		EnqueuedAt:   from.GetTimestamps().GetEnqueuedAt().AsTime(),
		Weight:       metadata.GetWeight(),
		Priority:     metadata.GetPriority(),
		ThrottleKeys: metadata.GetThrottleKeys(),
		Isolated:     metadata.GetIsolation() != filav1.Isolation_ISOLATION_UNSPECIFIED,
		client:       client,
		holding:      holding,
	}
}

// Ack removes the message for good. When it returns nil, the broker has done so. An error that is
// [ErrMessageNotFound] says that the lease has ended: the message will be, or was, delivered again. Whatever it returns,
// the lease is not extended any more.
func (m *ConsumeMessage) Ack(ctx context.Context) error {
	return m.settle(ctx, settlement{kind: settleAck})
}

// NackOption sets something of one nack.
type NackOption func(*settlement)

// RetryDelay keeps a nacked or released message back for a time.
func RetryDelay(delay time.Duration) NackOption {
	return func(s *settlement) { s.delay = delay }
}

// Nack says that the attempt failed. The message comes back after the delay of the queue, or is dead-lettered.
func (m *ConsumeMessage) Nack(ctx context.Context, errMsg string, options ...NackOption) error {
	return m.settle(ctx, nacked(errMsg, options))
}

// Release gives the message back. Nothing failed, and no attempt is counted.
func (m *ConsumeMessage) Release(ctx context.Context, options ...NackOption) error {
	of := nacked("", options)
	of.release = true
	return m.settle(ctx, of)
}

// Reject sends the message to the dead-letter queue.
func (m *ConsumeMessage) Reject(ctx context.Context, errMsg string) error {
	return m.settle(ctx, settlement{kind: settleNack, reason: errMsg, deadLetter: true})
}

// Extend makes the lease end so long from now; 0 means the visibility timeout of the queue. A program rarely needs it:
// leases are extended by themselves.
func (m *ConsumeMessage) Extend(ctx context.Context, by time.Duration) error {
	if m.client == nil {
		return errNotReceived()
	}
	return m.client.settleOne(ctx, settlement{kind: settleExtend, queue: m.Queue, lease: m.LeaseID, ids: []string{m.ID}, delay: by})
}

// Context returns ctx with the trace context of the message, if the client has a [Propagator].
func (m *ConsumeMessage) Context(ctx context.Context) context.Context {
	if m.client == nil || m.client.settings.propagator == nil {
		return ctx
	}
	return m.client.settings.propagator.Extract(ctx, m.Headers)
}

func (m *ConsumeMessage) settle(ctx context.Context, of settlement) error {
	if m.client == nil {
		return errNotReceived()
	}
	m.holding.forget(m.LeaseID, m.ID) // before: an extension must not cross the settlement
	of.queue, of.lease, of.ids = m.Queue, m.LeaseID, []string{m.ID}
	return m.client.settleOne(ctx, of)
}

// errNotReceived is for messages that a program has made itself, as its tests may do.
func errNotReceived() *Error { return invalid("the message was not received from a client") }

func nacked(errMsg string, options []NackOption) settlement {
	of := settlement{kind: settleNack, reason: errMsg}
	for _, option := range options {
		option(&of)
	}
	return of
}

// Ack removes a message that this or another client holds, by its id. [ConsumeMessage.Ack] is safer: it cannot touch a
// later delivery of the message.
func (c *Client) Ack(ctx context.Context, queue, msgID string) error {
	c.forget(queue, msgID)
	return c.settleOne(ctx, settlement{kind: settleAck, queue: queue, ids: []string{msgID}})
}

// Nack says that an attempt failed of a message that this or another client holds, by its id.
func (c *Client) Nack(ctx context.Context, queue, msgID, errMsg string, options ...NackOption) error {
	c.forget(queue, msgID)
	of := nacked(errMsg, options)
	of.queue, of.ids = queue, []string{msgID}
	return c.settleOne(ctx, of)
}

// forget ends the extension of a message, whichever consumer has received it.
func (c *Client) forget(queue, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for each := range c.holdings {
		if each.queue == queue {
			each.forgetAny(id)
		}
	}
}
