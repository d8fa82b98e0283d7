// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/fila-dev/fila-go/filav1"
)

// sweepAtOnce is how many messages one call moves or removes. The deadline applies to each call.
const sweepAtOnce = 10_000

// PeekOptions say which messages to look at. The zero value means all, oldest first, without payloads.
type PeekOptions struct {
	Filter      *MessageFilter
	NewestFirst bool
	// PayloadBytes is how much of each payload to return.
	PayloadBytes uint32
	// PageSize is how many messages are asked for at once, up to 1000. 0 means 100.
	PageSize uint32
}

// Peek ranges over messages of any queue without consuming them. Pages are asked for as the loop goes on.
func (c *Client) Peek(ctx context.Context, queue string, options PeekOptions) iter.Seq2[*PeekedMessage, error] {
	return pages(func(cursor string) ([]*PeekedMessage, string, error) {
		response, err := unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.PeekRequest, *filav1.PeekResponse] {
			return admin(conn).Peek
		}, &filav1.PeekRequest{
			Queue: queue, Filter: options.Filter, Limit: options.PageSize, NewestFirst: options.NewestFirst,
			PayloadBytes: options.PayloadBytes, Cursor: cursor,
		})
		return response.GetMessages(), response.GetCursor(), err
	})
}

// SweepOptions say which messages to move or to remove. The zero value means all. Leased messages stay.
type SweepOptions struct {
	Filter *MessageFilter
	// Count is the most messages; 0 means all.
	Count uint64
	// DryRun counts messages, and changes nothing.
	DryRun bool
	// AnyQueue allows Purge to remove messages that are not dead letters.
	AnyQueue bool
}

// again: a step whose answer was lost goes on with what is left. With a Count that could be too many.
func (o SweepOptions) again() bool { return o.Count == 0 || o.DryRun }

// Redrive moves messages of a dead-letter queue back to the queue that they came from, oldest first, and returns how
// many. After an error, those that are counted were moved.
func (c *Client) Redrive(ctx context.Context, deadLetterQueue string, options SweepOptions) (uint64, error) {
	return sweep(options.Count, func(count uint64, cursor string, final bool) (uint64, string, error) {
		response, err := unary(ctx, c, options.again(), deadLetterQueue, func(conn grpc.ClientConnInterface) call[*filav1.RedriveRequest, *filav1.RedriveResponse] {
			return admin(conn).Redrive
		}, &filav1.RedriveRequest{
			DlqQueue: deadLetterQueue, Count: count, Filter: options.Filter, DryRun: options.DryRun, Bounded: true,
			Cursor: cursor, Final: final,
		})
		return response.GetRedriven(), response.GetCursor(), err
	})
}

// Purge removes messages for good, oldest first, and returns how many. After an error, those that are counted were
// removed.
func (c *Client) Purge(ctx context.Context, queue string, options SweepOptions) (uint64, error) {
	return sweep(options.Count, func(count uint64, cursor string, final bool) (uint64, string, error) {
		response, err := unary(ctx, c, options.again(), queue, func(conn grpc.ClientConnInterface) call[*filav1.PurgeRequest, *filav1.PurgeResponse] {
			return admin(conn).Purge
		}, &filav1.PurgeRequest{
			Queue: queue, Count: count, Filter: options.Filter, DryRun: options.DryRun, Bounded: true, Cursor: cursor,
			AnyQueue: options.AnyQueue, Final: final,
		})
		return response.GetPurged(), response.GetCursor(), err
	})
}

// sweep takes bounded steps until count messages are done, or all when count is 0.
func sweep(count uint64, step func(count uint64, cursor string, final bool) (uint64, string, error)) (uint64, error) {
	var done uint64
	cursor := ""
	for {
		left := uint64(sweepAtOnce)
		if count > 0 {
			left = min(left, count-done)
		}
		moved, next, err := step(left, cursor, count > 0 && done+left == count)
		done += moved
		if err == nil && moved == 0 && next == cursor && next != "" {
			return done, repeatedCursor()
		}
		if err != nil || next == "" || (count > 0 && done >= count) {
			return done, err
		}
		cursor = next
	}
}
