// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/fila-dev/fila-go/filav1"
)

const (
	defaultTimeout     = 30 * time.Second
	defaultBufferBytes = 16 << 20
	// defaultMaxResponseBytes: servers can be set up for more than the 4 MiB of gRPC.
	defaultMaxResponseBytes = 64 << 20
	// goodbye is how long a consumer waits for the broker to take prefetched messages back.
	goodbye = 2 * time.Second
)

// Client talks to a broker, or to the members of a cluster. It is safe for concurrent use. Close it at the end.
type Client struct {
	settings *settings
	members  *members
	buffer   *semaphore.Weighted
	producer string

	mu        sync.Mutex
	closed    bool
	over      chan struct{} // closed when nothing more is to be done
	gone      chan struct{} // closed when nothing is left of the client
	enqueues  pipes[*enqueueItem]
	settles   pipes[*settleItem]
	consumers map[*Consumer]struct{}
	holdings  map[*holding]struct{}
	releases  sync.WaitGroup // messages that consumers give back
	work      sync.WaitGroup
}

// New makes a client of the broker at an address such as "localhost:5555". It does not wait for a connection.
func New(address string, options ...Option) (*Client, error) {
	s := &settings{timeout: defaultTimeout, bufferBytes: defaultBufferBytes, maxResponseBytes: defaultMaxResponseBytes}
	if address != "" {
		s.addresses = []string{address}
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, err
		}
	}
	if err := s.checkAddresses(); err != nil {
		return nil, err
	}
	c := &Client{
		settings:  s,
		members:   newMembers(s),
		buffer:    semaphore.NewWeighted(s.bufferBytes),
		producer:  rand.Text(),
		over:      make(chan struct{}),
		gone:      make(chan struct{}),
		enqueues:  pipes[*enqueueItem]{open: map[string]*pipe[*enqueueItem]{}},
		settles:   pipes[*settleItem]{open: map[string]*pipe[*settleItem]{}},
		consumers: map[*Consumer]struct{}{},
		holdings:  map[*holding]struct{}{},
	}
	return c, nil
}

// Close ends everything: consumers stop as [Consumer.Stop] does, other calls fail with [ErrClosed]. When it returns,
// the client has ended its goroutines and connections. Settle what the program holds before.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.gone // also when another goroutine closes it
		return nil
	}
	c.closed = true
	consumers := make([]*Consumer, 0, len(c.consumers))
	for each := range c.consumers {
		consumers = append(consumers, each)
	}
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	var stopping sync.WaitGroup
	for _, each := range consumers {
		stopping.Go(func() { _ = each.Stop(ctx) })
	}
	stopping.Wait()
	c.awaitReleases(ctx)
	c.mu.Lock()
	close(c.over) // under the lock: from here on no pipe is made, and no work begun
	c.mu.Unlock()
	c.enqueues.close()
	c.settles.close()
	c.members.close()
	c.work.Wait()
	close(c.gone)
	return nil
}

// awaitReleases waits until messages that consumers give back have gone back.
func (c *Client) awaitReleases(ctx context.Context) {
	released := make(chan struct{})
	c.work.Go(func() {
		c.releases.Wait()
		close(released)
	})
	select {
	case <-released:
	case <-ctx.Done():
	}
}

// begin runs work that Close waits for. It returns false when the client is over.
func (c *Client) begin(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.work.Go(work)
	return true
}

func (c *Client) isClosed() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// bounded gives a call the timeout of the client if its context has no deadline.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.settings.timeout)
}

// enqueuePipe is the stream of messages to a member. Each counts its batches by itself.
func (c *Client) enqueuePipe(address string) (*pipe[*enqueueItem], *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, closedError()
	}
	return c.enqueues.to(address, func(number int, address string) *pipe[*enqueueItem] {
		codec := &enqueueCodec{producer: fmt.Sprintf("%s-%d", c.producer, number)}
		made := newPipe(c, filav1.FilaService_EnqueueStream_FullMethodName, address, codec)
		made.known = producerKnown
		return made
	}), nil
}

// settlePipe works until the client is over, not only until Close begins: consumers that stop still settle.
func (c *Client) settlePipe(address string) (*pipe[*settleItem], *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return nil, closedError()
	}
	return c.settles.to(address, func(_ int, address string) *pipe[*settleItem] {
		return newPipe(c, filav1.FilaService_Settle_FullMethodName, address, &settleCodec{})
	}), nil
}

func (c *Client) dropHolding(h *holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holdings, h)
}
