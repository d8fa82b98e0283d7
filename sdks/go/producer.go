// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/fila-dev/fila-go/filav1"
)

const (
	maxBatchMessages = 1000
	maxBatchBytes    = 1 << 20
	// producerKnown is below the ten minutes for which the broker knows the batches of a producer.
	producerKnown = 9 * time.Minute
	// itemBytes is what a message on its way costs beside its own bytes.
	itemBytes = 256
)

// enqueueItem is one message on its way.
type enqueueItem struct {
	client *Client
	queue  string
	dedup  bool
	data   []byte // a field of the batch
	size   int64  // of the buffer
	owner  string
	hops   int
	pipe   *pipe[*enqueueItem]

	pending
	result EnqueueResult
}

func newEnqueueItem(c *Client, queue string) *enqueueItem {
	return &enqueueItem{client: c, queue: queue, pending: pending{done: make(chan struct{})}}
}

func (e *enqueueItem) answer(result EnqueueResult) {
	if e.decide() {
		e.result = result
		close(e.done)
	}
}

// outcome waits for the answer, or for the end of the context.
func (e *enqueueItem) outcome(ctx context.Context) EnqueueResult {
	if e.waiting() {
		e.pipe.await(ctx, e)
	}
	<-e.done
	return e.result
}

func (e *enqueueItem) fail(err *Error) { e.answer(EnqueueResult{Err: err}) }

// release gives its bytes back: it is in no batch any more.
func (e *enqueueItem) release() {
	e.client.buffer.Release(e.size)
}

// mayRetry: the broker said that it has done nothing, and that this will pass.
func (e *enqueueItem) mayRetry(failed *Error) bool {
	return e.size > 0 && passes(failed)
}

// passes: the broker said in-band that it has done nothing, and that the same request may succeed later or elsewhere.
func passes(failed *Error) bool {
	return failed.Retryable && failed.Kind != KindUnavailable
}

// wait is how long to wait before the message is sent again; another member is asked at once, a few times in a row.
func (e *enqueueItem) wait(failed *Error) time.Duration {
	e.client.members.learn(e.queue, failed.owner)
	if e.owner = failed.owner; e.owner != "" && e.hops < maxHops {
		e.hops++
		return 0
	}
	e.hops = 0
	return max(failed.RetryAfter, time.Millisecond)
}

func (e *enqueueItem) renewed() *enqueueItem {
	made := newEnqueueItem(e.client, e.queue)
	made.dedup, made.data, made.size, made.owner, made.hops = e.dedup, e.data, e.size, e.owner, e.hops
	return made
}

// enqueueCodec numbers the batches of one producer, and splits the answers.
type enqueueCodec struct {
	producer string
	sequence uint64
}

func (c *enqueueCodec) makeBatch(gathered []*enqueueItem) (*batch[*enqueueItem], []*enqueueItem) {
	made := &batch[*enqueueItem]{items: make([]*enqueueItem, 0, min(len(gathered), maxBatchMessages))}
	size, at := 0, 0
	for ; at < len(gathered); at++ {
		each := gathered[at]
		if !each.waiting() {
			each.release()
			continue
		}
		if full := size+len(each.data) > maxBatchBytes || len(made.items) == maxBatchMessages; full && len(made.items) > 0 {
			break
		}
		size += len(each.data)
		made.items = append(made.items, each)
	}
	rest := gathered[at:]
	if len(rest) == 0 {
		rest = nil
	}
	if len(made.items) == 0 {
		return nil, rest
	}
	c.sequence++
	made.sequence = c.sequence
	made.data = make(mem.BufferSlice, 0, len(made.items)+1)
	for _, each := range made.items {
		each.sent.Store(true)
		made.data = append(made.data, mem.SliceBuffer(each.data))
	}
	var tail []byte
	tail = protowire.AppendTag(tail, 2, protowire.BytesType)
	tail = protowire.AppendString(tail, c.producer)
	tail = protowire.AppendTag(tail, 3, protowire.VarintType)
	tail = protowire.AppendVarint(tail, c.sequence)
	made.data = append(made.data, mem.SliceBuffer(tail))
	return made, rest
}

func (c *enqueueCodec) answer(of *batch[*enqueueItem], response []byte) error {
	var answer filav1.EnqueueBatchResponse
	if err := proto.Unmarshal(response, &answer); err != nil {
		return err
	}
	if answer.GetSequence() != of.sequence {
		return fmt.Errorf("the answer to batch %d names batch %d", of.sequence, answer.GetSequence())
	}
	if answer.GetError() != nil {
		failed := fromContract(answer.GetError(), "")
		if of.resent && passes(failed) {
			return failed
		}
		for _, each := range of.items {
			each.fail(failed)
		}
		return nil
	}
	if len(answer.GetResults()) != len(of.items) {
		return fmt.Errorf("%d results for %d messages", len(answer.GetResults()), len(of.items))
	}
	for at, result := range answer.GetResults() {
		each := of.items[at]
		if result.GetError() != nil {
			each.fail(fromContract(result.GetError(), ""))
			continue
		}
		// A batch that was sent again is a duplicate of itself. That is no news for a message without a key.
		duplicate := result.GetDuplicate() && (each.dedup || !of.resent)
		each.answer(EnqueueResult{ID: result.GetMessageId(), Duplicate: duplicate})
	}
	return nil
}
