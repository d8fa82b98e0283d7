// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/fila-dev/fila-go/filav1"
)

// EnqueueMessage is a message to send.
type EnqueueMessage struct {
	Queue   string
	Headers map[string]string
	Payload []byte
	// Delay: the message is not delivered before.
	Delay time.Duration
	// Priority orders messages of one fairness key, 0 (most urgent) to 255. Nil means 5.
	Priority *int32
	// DedupKey: a second message with this key within the queue's window is not enqueued.
	DedupKey string
}

// EnqueueResult is what became of a message.
type EnqueueResult struct {
	ID string
	// Duplicate: an earlier message with the same DedupKey has this ID, and nothing was enqueued.
	Duplicate bool
	// Err is why the message was not enqueued.
	Err error
}

// EnqueueOption sets something of one message.
type EnqueueOption func(*EnqueueMessage)

// Delay keeps a message back for a time.
func Delay(delay time.Duration) EnqueueOption {
	return func(m *EnqueueMessage) { m.Delay = delay }
}

// Priority orders a message among those of its fairness key: 0 (most urgent) to 255.
func Priority(priority int32) EnqueueOption {
	return func(m *EnqueueMessage) { m.Priority = &priority }
}

// DedupKey names a message, so that it is enqueued once within the queue's window.
func DedupKey(key string) EnqueueOption {
	return func(m *EnqueueMessage) { m.DedupKey = key }
}

// Enqueue sends one message and returns its id when it is durable. Calls from many goroutines travel together.
//
// When the context ends first, the message was enqueued once or not at all.
func (c *Client) Enqueue(ctx context.Context, queue string, headers map[string]string, payload []byte, options ...EnqueueOption) (string, error) {
	message := EnqueueMessage{Queue: queue, Headers: headers, Payload: payload}
	for _, option := range options {
		option(&message)
	}
	result, err := c.Send(ctx, message)
	return result.ID, err
}

// Send is [Client.Enqueue] with everything that the broker answers. Its error is the Err of the result too.
func (c *Client) Send(ctx context.Context, message EnqueueMessage) (EnqueueResult, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	result := c.sendAll(ctx, []EnqueueMessage{message})[0]
	return result, result.Err
}

// EnqueueMany sends messages in batches. There is a result for each, in order. The error is that of the first message
// that was not enqueued.
func (c *Client) EnqueueMany(ctx context.Context, messages []EnqueueMessage) ([]EnqueueResult, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	results := c.sendAll(ctx, messages)
	failed, first := 0, error(nil)
	for _, result := range results {
		if result.Err != nil {
			if failed++; first == nil {
				first = result.Err
			}
		}
	}
	if first != nil {
		return results, fmt.Errorf("%d of %d messages not enqueued: %w", failed, len(results), first)
	}
	return results, nil
}

// sendAll keeps several messages on their way at once, and sends again those whose refusal passes.
func (c *Client) sendAll(ctx context.Context, messages []EnqueueMessage) []EnqueueResult {
	results := make([]EnqueueResult, len(messages))
	items := make([]*enqueueItem, len(messages))
	left := make([]int, 0, len(messages))
	for at := range messages {
		items[at] = c.encoded(ctx, &messages[at])
		left = append(left, at)
	}
	var waits backoff
	for {
		for _, at := range left {
			if items[at].size > 0 {
				c.submit(ctx, items[at])
			}
		}
		var again []int
		var wait time.Duration
		for _, at := range left {
			results[at] = items[at].outcome(ctx)
			var failed *Error
			if errors.As(results[at].Err, &failed) && items[at].mayRetry(failed) && ctx.Err() == nil {
				again = append(again, at)
				wait = max(wait, items[at].wait(failed))
			}
		}
		if len(again) == 0 {
			return results
		}
		if wait > 0 && !c.pause(ctx, waits.after(wait)) {
			if c.isClosed() {
				for _, at := range again {
					results[at] = EnqueueResult{Err: closedError()}
				}
			}
			return results
		}
		for _, at := range again {
			items[at] = items[at].renewed()
		}
		left = again
	}
}

// encoded makes the bytes of a message now: the caller may change it once Enqueue has returned.
func (c *Client) encoded(ctx context.Context, message *EnqueueMessage) *enqueueItem {
	made := newEnqueueItem(c, message.Queue)
	made.dedup = message.DedupKey != ""
	if message.Queue == "" {
		made.fail(invalid("a message needs a queue"))
		return made
	}
	headers := message.Headers
	if c.settings.propagator != nil {
		added := map[string]string{}
		c.settings.propagator.Inject(ctx, added)
		if len(added) > 0 {
			maps.Copy(added, headers) // what the caller has set stays
			headers = added
		}
	}
	request := &filav1.EnqueueRequest{
		Queue: message.Queue, Headers: headers, Payload: message.Payload,
		DelayMs: milliseconds(message.Delay), Priority: message.Priority, DedupKey: message.DedupKey,
	}
	size := proto.Size(request)
	data := make([]byte, 0, 1+protowire.SizeBytes(size))
	data = protowire.AppendVarint(protowire.AppendTag(data, 1, protowire.BytesType), uint64(size))
	data, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(data, request)
	if err != nil {
		made.fail(invalid(err.Error()))
		return made
	}
	made.data, made.size = data, min(int64(len(data))+itemBytes, c.settings.bufferBytes)
	return made
}

// milliseconds rounds up: 0 often means something else than "at once".
func milliseconds(of time.Duration) int64 {
	if of%time.Millisecond > 0 {
		of += time.Millisecond
	}
	return of.Milliseconds()
}

// submit waits for room in the buffer, and hands the message to the stream of the member that has its queue.
func (c *Client) submit(ctx context.Context, item *enqueueItem) {
	address := item.owner
	if address == "" {
		address = c.members.route(item.queue)
	}
	to, failed := c.enqueuePipe(address)
	if failed != nil {
		item.fail(failed)
		return
	}
	if c.buffer.Acquire(ctx, item.size) != nil {
		item.fail(c.ended(ctx, to.troubled(), false))
		return
	}
	for item.pipe = to; !to.submit(item); item.pipe = to { // a pipe that made room meanwhile
		if to, failed = c.enqueuePipe(address); failed != nil {
			item.fail(failed)
			item.release()
			return
		}
	}
}
