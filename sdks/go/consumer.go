// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

const (
	defaultMaxInFlight = 100
	mostInFlight       = 65_535
)

// ConsumeOption sets something of one [Consumer].
type ConsumeOption func(*Consumer) error

// MaxInFlight bounds the messages that are delivered to a consumer and not settled, 1 to 65535. The default is 100.
func MaxInFlight(count int) ConsumeOption {
	return func(k *Consumer) error {
		if count < 1 || count > mostInFlight {
			return invalid("MaxInFlight is from 1 to 65535")
		}
		k.credit = uint32(count)
		return nil
	}
}

// Consumer receives the messages of a queue. It connects by itself, again and again, until Stop or until the broker
// refuses it. It is safe for concurrent use.
type Consumer struct {
	client  *Client
	queue   string
	credit  uint32 // belongs to run once it has begun
	holding *holding
	shelf   *shelf
	// out is unbuffered: a message was handed to the program when it was received from it, and not before.
	out     chan *ConsumeMessage
	credits chan uint32

	waiting context.Context // over once the consumer is to stop
	stop    context.CancelFunc
	stream  context.Context // over once its stream is to end without a goodbye
	abort   context.CancelFunc

	opened     chan struct{} // closed when the broker has accepted the consumer, or the consumer has ended
	openedOnce sync.Once
	ended      chan struct{}
	mu         sync.Mutex
	trouble    *Error // the last failure of the connection
	err        *Error // what ended the consumer
}

// Subscribe makes a consumer of a queue. It does not wait for a connection.
func (c *Client) Subscribe(queue string, options ...ConsumeOption) (*Consumer, error) {
	if queue == "" {
		return nil, invalid("a consumer needs a queue")
	}
	k := &Consumer{
		client:  c,
		queue:   queue,
		credit:  defaultMaxInFlight,
		holding: newHolding(c, queue),
		shelf:   newShelf(),
		out:     make(chan *ConsumeMessage),
		credits: make(chan uint32, 1),
		opened:  make(chan struct{}),
		ended:   make(chan struct{}),
	}
	for _, option := range options {
		if err := option(k); err != nil {
			return nil, err
		}
	}
	k.waiting, k.stop = context.WithCancel(context.Background())
	k.stream, k.abort = context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, closedError()
	}
	c.consumers[k] = struct{}{}
	c.holdings[k.holding] = struct{}{}
	c.work.Go(k.run)
	c.work.Go(k.holding.run)
	return k, nil
}

// Consume returns a channel of the messages of a queue, once the broker has accepted the consumer. When the context
// ends, the consumer stops as [Consumer.Stop] does and the channel is closed. It is closed too when the broker refuses
// the consumer later, for example because the queue was deleted. [Client.Messages] and [Client.Subscribe] tell why.
func (c *Client) Consume(ctx context.Context, queue string, options ...ConsumeOption) (<-chan *ConsumeMessage, error) {
	k, err := c.Subscribe(queue, options...)
	if err != nil {
		return nil, err
	}
	unlink := context.AfterFunc(ctx, k.stop)
	context.AfterFunc(k.waiting, func() { unlink() }) // a context may outlive many consumers
	opening, cancel := c.bounded(ctx)
	defer cancel()
	select {
	case <-k.opened:
	case <-opening.Done():
		k.stop()
		return nil, c.ended(opening, k.troubled(), false)
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, c.ended(ctx, nil, false)
	}
	return k.Chan(), nil
}

// Messages ranges over the messages of a queue. The loop ends when the context ends or the client is closed. An error is
// the last thing it yields. Leaving the loop stops the consumer; messages that the program holds can still be settled.
func (c *Client) Messages(ctx context.Context, queue string, options ...ConsumeOption) iter.Seq2[*ConsumeMessage, error] {
	return func(yield func(*ConsumeMessage, error) bool) {
		k, err := c.Subscribe(queue, options...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = k.Stop(context.Background()) }()
		for {
			message, err := k.Next(ctx)
			if err != nil {
				if ctx.Err() == nil && !errors.Is(err, ErrClosed) {
					yield(nil, err)
				}
				return
			}
			if !yield(message, nil) {
				return
			}
		}
	}
}

// Next waits for a message for as long as the context lasts. After Stop, its error is [ErrClosed].
func (k *Consumer) Next(ctx context.Context) (*ConsumeMessage, error) {
	if ctx.Err() != nil {
		return nil, fromContext(ctx, nil)
	}
	message, asker := k.shelf.take()
	if message != nil {
		return message, nil
	}
	var source <-chan *ConsumeMessage = k.out
	if asker != nil {
		source = asker
	}
	select {
	case message = <-source:
	case <-ctx.Done():
		if asker != nil {
			message = k.shelf.leave(asker)
		}
		if message == nil {
			return nil, fromContext(ctx, nil)
		}
	}
	if message != nil {
		return message, nil
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	return nil, &Error{Kind: KindClosed, Message: "the consumer was stopped"}
}

// Chan returns the channel of the messages. It is closed when the consumer has ended; Err says why.
func (k *Consumer) Chan() <-chan *ConsumeMessage {
	k.shelf.useChannel()
	return k.out
}

// Err is what ended the consumer; nil when it was stopped, or still works.
func (k *Consumer) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		return nil
	}
	return k.err
}

// SetMaxInFlight changes the credit. 0 holds the delivery. What was delivered stays.
func (k *Consumer) SetMaxInFlight(count int) error {
	if count < 0 || count > mostInFlight {
		return invalid("the credit is from 0 to 65535")
	}
	for {
		select {
		case k.credits <- uint32(count):
			return nil
		case <-k.credits: // an older one that was not sent yet
		case <-k.ended:
			return nil
		}
	}
}

// Stop ends the delivery. Messages that were never handed to the program go back to the queue and no attempt is
// counted. Those that the program holds stay its own: their leases are extended, and they can be settled, until the
// client is closed.
func (k *Consumer) Stop(ctx context.Context) error {
	k.stop()
	select {
	case <-k.ended:
		return nil
	case <-ctx.Done():
		k.abort()
		<-k.ended
		return fromContext(ctx, nil)
	}
}

func (k *Consumer) troubled() *Error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble
}

// run uses one stream after another.
func (k *Consumer) run() {
	failed := k.serveAll()
	k.mu.Lock()
	k.err = failed
	k.mu.Unlock()
	k.stop()
	k.abort()
	k.holding.end()
	k.open()
	k.shelf.end()
	close(k.out)
	close(k.ended)
	k.client.mu.Lock()
	delete(k.client.consumers, k)
	k.client.mu.Unlock()
}

func (k *Consumer) open() { k.openedOnce.Do(func() { close(k.opened) }) }

// serveAll returns nil when the consumer was stopped, and otherwise what the broker refuses it for.
func (k *Consumer) serveAll() *Error {
	var waits backoff
	hops, keys := 0, 0
	for k.waiting.Err() == nil {
		at, failed := k.client.members.at(k.client.members.route(k.queue))
		if failed != nil {
			return failed
		}
		lost := true
		var owner string
		if failed = at.ready(k.waiting); failed == nil {
			one := &session{consumer: k}
			failed, lost, owner = one.serve(at)
			k.takenBack(k.shelf.clear())
			if one.started { // with this key
				keys = 0
			}
			if one.delivered {
				waits.reset()
				hops = 0
			}
		}
		if k.waiting.Err() != nil {
			return nil
		}
		k.mu.Lock()
		k.trouble = failed
		k.mu.Unlock()
		if owner != "" {
			k.client.members.learn(k.queue, owner)
			if hops++; hops <= maxHops {
				continue
			}
		}
		switch {
		case failed.Kind == kindKeyEnded:
			if keys++; keys > 1 {
				return failed
			}
		case !failed.Retryable:
			return failed
		case lost && failed.Kind != kindStoreBusy:
			k.client.members.leave(at.address)
		}
		k.client.pause(k.waiting, waits.after(failed.RetryAfter))
		hops = 0
	}
	return nil
}

// takenBack: prefetched messages of a stream that has ended are not the program's any more. The broker takes them back
// when it notices; if it has not, it is told.
func (k *Consumer) takenBack(messages []*ConsumeMessage) {
	if len(messages) == 0 {
		return
	}
	k.holding.forgetAll(messages)
	k.release(messages)
}

// release gives messages back in the background. What is refused, the broker has taken back by itself.
func (k *Consumer) release(messages []*ConsumeMessage) {
	byLease := map[string][]string{}
	for _, each := range messages {
		byLease[each.LeaseID] = append(byLease[each.LeaseID], each.ID)
	}
	var back []settlement
	for leaseID, ids := range byLease {
		of := settlement{kind: settleNack, queue: k.queue, lease: leaseID, release: true}
		back = append(back, of.inPortions(ids)...)
	}
	k.client.releases.Add(1)
	begun := k.client.begin(func() {
		defer k.client.releases.Done()
		ctx, cancel := context.WithTimeout(context.Background(), k.client.settings.timeout)
		defer cancel()
		k.client.settleOnce(ctx, k.queue, back...)
	})
	if !begun {
		k.client.releases.Done()
	}
}

// visibilityOf reads how long leases last from the metadata of a stream.
func visibilityOf(values []string) time.Duration {
	if len(values) == 0 {
		return 0
	}
	visibility, err := time.ParseDuration(values[0] + "ms")
	if err != nil {
		return 0
	}
	return visibility
}
