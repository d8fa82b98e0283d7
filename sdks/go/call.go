// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// unary makes one call within the deadline. It follows members that others name, and waits out refusals that pass. A
// call whose answer was lost is sent again only if again says that this changes nothing twice.
func unary[Request, Response any](
	ctx context.Context, c *Client, again bool, queue string,
	method func(grpc.ClientConnInterface) func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request,
) (Response, error) {
	var none Response
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var waits backoff
	address, hops, keys := c.members.route(queue), 0, 0
	for {
		at, failed := c.members.at(address)
		if failed != nil {
			return none, failed
		}
		sent := false
		if failed = at.ready(ctx); failed == nil {
			sent = true
			var trailer metadata.MD
			response, err := method(at.conn)(ctx, request, grpc.Trailer(&trailer))
			if err == nil {
				c.members.learn(queue, ownerIn(trailer))
				return response, nil
			}
			if errors.As(err, new(*Error)) {
				return none, err // of the key: there is none to send
			}
			var lost bool
			failed, lost = fromStatus(err)
			if owner := ownerOf(failed, trailer); owner != "" {
				c.members.learn(queue, owner)
				if hops++; hops <= maxHops {
					address = owner
					continue
				}
			}
			if failed.Kind == kindKeyEnded {
				if keys++; keys == 1 {
					continue
				}
				return none, failed
			}
			unanswered := lost && failed.Kind == KindUnavailable
			if unanswered && !again && ctx.Err() == nil && !c.isClosed() {
				return none, failed
			}
		}
		if ctx.Err() != nil || c.isClosed() {
			return none, c.ended(ctx, failed, sent)
		}
		if !failed.Retryable {
			return none, failed
		}
		if failed.Kind == KindUnavailable || failed.Kind == kindShuttingDown {
			c.members.leave(at.address)
			address = ""
		}
		if !c.pause(ctx, waits.after(failed.RetryAfter)) {
			if ctx.Err() != nil || c.isClosed() {
				return none, c.ended(ctx, failed, sent)
			}
			return none, failed
		}
		hops = 0
	}
}

// ended is the error of a call whose context or client is over. One that never left the client says why.
func (c *Client) ended(ctx context.Context, trouble *Error, sent bool) *Error {
	if c.isClosed() {
		return closedError()
	}
	made := fromContext(ctx, trouble)
	if made.Kind == KindDeadlineExceeded && !sent && trouble != nil && trouble.Kind == KindUnavailable {
		return unavailable(trouble.Message, errors.Join(trouble.cause, made.cause))
	}
	return made
}
