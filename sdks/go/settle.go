// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/fila-dev/fila-go/filav1"
)

// maxBatchIDs bounds the messages of one settle request: about 200 KB of ids.
const maxBatchIDs = 5000

type settleKind int

const (
	settleAck settleKind = iota
	settleNack
	settleExtend
)

// settlement says what to do with messages of one queue that are held under one lease; without a lease id, under any.
type settlement struct {
	kind       settleKind
	queue      string
	lease      string
	ids        []string
	reason     string
	delay      time.Duration // of a nack, or for how long to extend
	release    bool
	deadLetter bool
}

// inPortions are settlements of many messages, each small enough for a request.
func (s settlement) inPortions(ids []string) []settlement {
	var portions []settlement
	for part := range slices.Chunk(ids, maxBatchIDs) {
		s.ids = part
		portions = append(portions, s)
	}
	return portions
}

// settleItem is a settlement on its way.
type settleItem struct {
	settlement
	pending
	err    *Error            // of the whole
	failed map[string]*Error // of single messages, by id
}

func newSettleItem(of settlement) *settleItem {
	return &settleItem{settlement: of, pending: pending{done: make(chan struct{})}}
}

func (s *settleItem) fail(err *Error) {
	if s.decide() {
		s.err = err
		close(s.done)
	}
}

func (s *settleItem) answer(failed map[string]*Error) {
	if s.decide() {
		s.failed = failed
		close(s.done)
	}
}

// release: settlements are small and not counted in the buffer.
func (s *settleItem) release() {}

// settle carries a settlement out within the deadline. Refusals that pass are waited out. The answer has the messages
// that were refused; the error is that of the whole.
func (c *Client) settle(ctx context.Context, of settlement) (map[string]*Error, *Error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var waits backoff
	var refused map[string]*Error
	for hops := 0; ; {
		item := c.settleOnce(ctx, of.queue, of)[0]
		again, reason := item.toRepeat()
		for id, err := range item.failed {
			if refused == nil {
				refused = map[string]*Error{}
			}
			refused[id] = err
		}
		if reason == nil || ctx.Err() != nil {
			return refused, item.err
		}
		if reason.owner != "" && hops < maxHops {
			hops++
		} else if hops = 0; !c.pause(ctx, waits.after(reason.RetryAfter)) {
			if c.isClosed() {
				return nil, closedError()
			}
			return refused, item.err
		}
		of.ids = again
		for _, id := range again {
			delete(refused, id)
		}
	}
}

// settleOnce carries out settlements of one queue, which travel together, and waits for their answers. It notes the
// member that has the queue, if another one has named it.
func (c *Client) settleOnce(ctx context.Context, queue string, all ...settlement) []*settleItem {
	items := make([]*settleItem, len(all))
	for at, of := range all {
		items[at] = newSettleItem(of)
	}
	address := c.members.route(queue)
	for {
		to, failed := c.settlePipe(address)
		if failed != nil {
			for _, each := range items {
				each.fail(failed)
			}
			return items
		}
		if !to.submit(items...) { // it made room meanwhile
			continue
		}
		for _, each := range items {
			to.await(ctx, each)
			c.members.learn(queue, each.owner())
		}
		return items
	}
}

// owner is the member that a refusal names; empty when there is none.
func (s *settleItem) owner() string {
	if s.err != nil {
		return s.err.owner
	}
	for _, each := range s.failed {
		if each.owner != "" {
			return each.owner
		}
	}
	return ""
}

// toRepeat has the messages whose refusal passes, and one such refusal.
func (s *settleItem) toRepeat() (again []string, reason *Error) {
	if s.err != nil {
		if passes(s.err) {
			return s.ids, s.err
		}
		return nil, nil
	}
	for id, err := range s.failed {
		if passes(err) {
			again, reason = append(again, id), err
		}
	}
	return again, reason
}

// settleOne is settle for one message.
func (c *Client) settleOne(ctx context.Context, of settlement) error {
	if of.queue == "" || of.ids[0] == "" {
		return invalid("a queue and the id of a message are needed")
	}
	if !utf8.ValidString(of.queue) || !utf8.ValidString(of.ids[0]) || !utf8.ValidString(of.reason) {
		return invalid("texts must be UTF-8") // in a batch it would spoil those of others
	}
	refused, err := c.settle(ctx, of)
	if err != nil {
		return err
	}
	if err := refused[of.ids[0]]; err != nil {
		return err
	}
	return nil
}

// settleCodec merges settlements into requests, and splits the answers.
type settleCodec struct {
	sequence uint64
}

type messageName struct{ queue, id string }

// makeBatch names each message once: an answer names failures by message, so the second settlement of a message waits
// for the next batch.
func (c *settleCodec) makeBatch(gathered []*settleItem) (*batch[*settleItem], []*settleItem) {
	made := &batch[*settleItem]{items: make([]*settleItem, 0, min(len(gathered), maxBatchIDs))}
	named := make(map[messageName]struct{}, min(len(gathered), maxBatchIDs))
	at := 0
	for ; at < len(gathered); at++ {
		each := gathered[at]
		if !each.waiting() {
			continue
		}
		if len(made.items) > 0 && (len(named)+len(each.ids) > maxBatchIDs || each.isIn(named)) {
			break
		}
		for _, id := range each.ids {
			named[messageName{each.queue, id}] = struct{}{}
		}
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
	data, err := proto.Marshal(settleRequest(made.items, c.sequence))
	if err != nil {
		for _, each := range made.items {
			each.fail(invalid(err.Error()))
		}
		return c.makeBatch(rest)
	}
	made.data = mem.BufferSlice{mem.SliceBuffer(data)}
	return made, rest
}

func (s *settleItem) isIn(named map[messageName]struct{}) bool {
	for _, id := range s.ids {
		if _, found := named[messageName{s.queue, id}]; found {
			return true
		}
	}
	return false
}

func settleRequest(items []*settleItem, sequence uint64) *filav1.SettleRequest {
	request := &filav1.SettleRequest{Sequence: sequence}
	acks := map[[2]string]*filav1.AckGroup{}
	for _, each := range items {
		each.sent.Store(true)
		switch each.kind {
		case settleAck:
			group := acks[[2]string{each.queue, each.lease}]
			if group == nil {
				group = &filav1.AckGroup{Queue: each.queue, LeaseId: each.lease}
				acks[[2]string{each.queue, each.lease}] = group
				request.Acks = append(request.Acks, group)
			}
			group.MessageIds = append(group.MessageIds, each.ids...)
		case settleNack:
			for _, id := range each.ids {
				request.Nacks = append(request.Nacks, &filav1.NackRequest{
					Queue: each.queue, MessageId: id, LeaseId: each.lease, Error: each.reason,
					DelayMs: milliseconds(each.delay), Release: each.settlement.release, DeadLetter: each.deadLetter,
				})
			}
		case settleExtend:
			request.Extends = append(request.Extends, &filav1.ExtendGroup{
				Queue: each.queue, LeaseId: each.lease, MessageIds: each.ids, ExtendMs: milliseconds(each.delay),
			})
		}
	}
	return request
}

func (c *settleCodec) answer(of *batch[*settleItem], response []byte) error {
	var answer filav1.SettleResponse
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
	failures := map[messageName]*Error{}
	for _, failure := range answer.GetFailures() {
		failures[messageName{failure.GetQueue(), failure.GetMessageId()}] = fromContract(failure.GetError(), "")
	}
	for _, each := range of.items {
		each.answer(each.failuresIn(failures, of.resent))
	}
	return nil
}

// failuresIn has the failures of its own messages. An ack that was sent again and finds its message gone was carried
// out the first time. Any other refusal stands: the message still exists.
func (s *settleItem) failuresIn(failures map[messageName]*Error, resent bool) map[string]*Error {
	if len(failures) == 0 {
		return nil
	}
	var own map[string]*Error
	for _, id := range s.ids {
		failed := failures[messageName{s.queue, id}]
		if failed == nil || (resent && s.kind == settleAck && failed.Kind == kindMessageGone) {
			continue
		}
		if own == nil {
			own = map[string]*Error{}
		}
		own[id] = failed
	}
	return own
}
