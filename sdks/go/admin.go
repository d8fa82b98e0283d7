// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/fila-dev/fila-go/filav1"
)

// The messages of the contract that calls about queues take and give.
type (
	// QueueConfig has the settings of a queue. Fields that are not set take the default of the broker.
	QueueConfig = filav1.QueueConfig
	// QueueSummary has the name and the main figures of a queue.
	QueueSummary = filav1.QueueSummary
	// QueueStats has the settings and all figures of a queue.
	QueueStats = filav1.GetStatsResponse
	// MessageFilter chooses messages of a queue.
	MessageFilter = filav1.MessageFilter
	// PeekedMessage is a message that was looked at, and where it stands.
	PeekedMessage = filav1.PeekedMessage
	// Explanation says why a message waits, and when it will be delivered.
	Explanation = filav1.ExplainResponse
	// ServerInfo has the version, the features and the limits of a server.
	ServerInfo = filav1.DescribeResponse
)

type (
	stub           = filav1.FilaAdminClient
	call[Q, R any] = func(context.Context, Q, ...grpc.CallOption) (R, error)
)

func admin(conn grpc.ClientConnInterface) stub { return filav1.NewFilaAdminClient(conn) }

// Describe tells the version, the features and the limits of the server.
func (c *Client) Describe(ctx context.Context) (*ServerInfo, error) {
	return unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.DescribeRequest, *ServerInfo] {
		return filav1.NewFilaServiceClient(conn).Describe
	}, &filav1.DescribeRequest{})
}

// CreateQueue creates a queue and its dead-letter queue, "<queue>.dlq". A nil config means the defaults. The error is
// [ErrQueueAlreadyExists] when there is one of that name.
func (c *Client) CreateQueue(ctx context.Context, queue string, config *QueueConfig) error {
	_, err := unary(ctx, c, false, queue, func(conn grpc.ClientConnInterface) call[*filav1.CreateQueueRequest, *filav1.CreateQueueResponse] {
		return admin(conn).CreateQueue
	}, &filav1.CreateQueueRequest{Name: queue, Config: config})
	return err
}

// UpdateQueue changes the settings that are present in config, and returns all settings.
func (c *Client) UpdateQueue(ctx context.Context, queue string, config *QueueConfig) (*QueueConfig, error) {
	response, err := unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.UpdateQueueRequest, *filav1.UpdateQueueResponse] {
		return admin(conn).UpdateQueue
	}, &filav1.UpdateQueueRequest{Queue: queue, Config: config})
	return response.GetConfig(), err
}

// DeleteQueue removes a queue, its dead-letter queue and all their messages, and returns how many these were. Without
// force it is an error when there are dead letters.
func (c *Client) DeleteQueue(ctx context.Context, queue string, force bool) (uint64, error) {
	response, err := unary(ctx, c, false, queue, func(conn grpc.ClientConnInterface) call[*filav1.DeleteQueueRequest, *filav1.DeleteQueueResponse] {
		return admin(conn).DeleteQueue
	}, &filav1.DeleteQueueRequest{Queue: queue, Force: force})
	return response.GetMessagesDeleted(), err
}

// PauseQueue stops the delivery of a queue, also over restarts, until ResumeQueue.
func (c *Client) PauseQueue(ctx context.Context, queue string) error {
	_, err := unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.PauseQueueRequest, *filav1.PauseQueueResponse] {
		return admin(conn).PauseQueue
	}, &filav1.PauseQueueRequest{Queue: queue})
	return err
}

// ResumeQueue lets a queue deliver again.
func (c *Client) ResumeQueue(ctx context.Context, queue string) error {
	_, err := unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.ResumeQueueRequest, *filav1.ResumeQueueResponse] {
		return admin(conn).ResumeQueue
	}, &filav1.ResumeQueueRequest{Queue: queue})
	return err
}

// Queues ranges over all queues with their figures, ordered by name. Pages are asked for as the loop goes on.
func (c *Client) Queues(ctx context.Context) iter.Seq2[*QueueSummary, error] {
	return pages(func(cursor string) ([]*QueueSummary, string, error) {
		response, err := unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.ListQueuesRequest, *filav1.ListQueuesResponse] {
			return admin(conn).ListQueues
		}, &filav1.ListQueuesRequest{Cursor: cursor})
		return response.GetQueues(), response.GetCursor(), err
	})
}

// ListQueues returns all queues.
func (c *Client) ListQueues(ctx context.Context) ([]*QueueSummary, error) {
	ctx, cancel := c.bounded(ctx) // for all pages together
	defer cancel()
	return collect(c.Queues(ctx))
}

// Stats returns the settings and figures of a queue.
func (c *Client) Stats(ctx context.Context, queue string) (*QueueStats, error) {
	return unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.GetStatsRequest, *QueueStats] {
		return admin(conn).GetStats
	}, &filav1.GetStatsRequest{Queue: queue})
}

// Explain tells why a message waits, and when it will be delivered. An empty id means the next message of the queue.
func (c *Client) Explain(ctx context.Context, queue, msgID string) (*Explanation, error) {
	request := &filav1.ExplainRequest{Queue: queue}
	if msgID != "" {
		request.Subject = &filav1.ExplainRequest_MessageId{MessageId: msgID}
	}
	return unary(ctx, c, true, queue, func(conn grpc.ClientConnInterface) call[*filav1.ExplainRequest, *Explanation] {
		return admin(conn).Explain
	}, request)
}

// pages ranges over the items of all pages.
func pages[T any](page func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cursor := ""
		for {
			items, next, err := page(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == cursor && next != "" {
				var none T
				yield(none, repeatedCursor())
				return
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

// repeatedCursor: the pages of the broker would never end.
func repeatedCursor() *Error {
	return &Error{Kind: kindInternal, Message: "the broker has sent the same cursor twice", code: codes.Internal}
}

func collect[T any](items iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
