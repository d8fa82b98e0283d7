// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	fila "github.com/fila-dev/fila-go"
)

func (d *driver) enqueue(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		result, err := c.Send(ctx, one.to(one.Queue))
		return table{"id": result.ID, "duplicate": result.Duplicate}, err
	})
}

func (d *driver) enqueueMany(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		messages := make([]fila.EnqueueMessage, len(one.Messages))
		for at := range messages {
			messages[at] = one.Messages[at].to(one.Queue)
		}
		results, _ := c.EnqueueMany(ctx, messages) // its error is one of the results
		given := make([]table, len(results))
		for at, result := range results {
			given[at] = table{"id": result.ID, "duplicate": result.Duplicate}
			if result.Err != nil {
				given[at] = table{"error": described(result.Err)}
			}
		}
		return table{"results": given}, nil
	})
}

func (d *driver) cancelEnqueue(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		after := timer(milliseconds(one.AfterMS), cancel)
		defer after.Stop()
		id, err := c.Enqueue(ctx, one.Queue, nil, one.Payload)
		return table{"id": id}, err
	})
}

func (d *driver) consume(_ context.Context, one *request) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	made, err := c.Subscribe(one.Queue, one.consumeOptions()...)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.consumers[one.Consumer] = made
	return nil, nil
}

func (d *driver) consumer(name string) (*fila.Consumer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.consumers[name]
	if found == nil {
		return nil, errors.New("there is no consumer " + name)
	}
	return found, nil
}

func (d *driver) next(ctx context.Context, one *request) (table, error) {
	consumer, err := d.consumer(one.Consumer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := one.within(ctx, defaultTimeout)
	defer cancel()
	given := []table{}
	for len(given) < one.Count {
		message, err := consumer.Next(ctx)
		if errors.Is(err, fila.ErrTimeout) {
			break
		}
		if err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.held[message.ID] = message
		d.mu.Unlock()
		given = append(given, shown(message))
	}
	return table{"messages": given}, nil
}

func shown(message *fila.ConsumeMessage) table {
	headers, payload := message.Headers, message.Payload
	if headers == nil {
		headers = map[string]string{}
	}
	if payload == nil {
		payload = []byte{}
	}
	return table{
		"id": message.ID, "queue": message.Queue, "headers": headers, "payload": payload,
		"fairness_key": message.FairnessKey, "attempt_count": message.AttemptCount, "lease_id": message.LeaseID,
	}
}

func (d *driver) settle(ctx context.Context, one *request) (table, error) {
	d.mu.Lock()
	message := d.held[one.Message]
	d.mu.Unlock()
	if message == nil {
		return nil, errors.New("the driver does not hold " + one.Message)
	}
	ctx, cancel := one.within(ctx, defaultTimeout)
	defer cancel()
	switch one.Op {
	case "ack":
		return nil, message.Ack(ctx)
	case "nack":
		return nil, message.Nack(ctx, one.Error, fila.RetryDelay(milliseconds(one.DelayMS)))
	case "release":
		return nil, message.Release(ctx)
	case "reject":
		return nil, message.Reject(ctx, one.Error)
	default:
		return nil, message.Extend(ctx, milliseconds(one.ExtendMS))
	}
}

func (d *driver) ackByID(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		return nil, c.Ack(ctx, one.Queue, one.Message)
	})
}

func (d *driver) nackByID(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		return nil, c.Nack(ctx, one.Queue, one.Message, one.Error)
	})
}

func (d *driver) stop(ctx context.Context, one *request) (table, error) {
	consumer, err := d.consumer(one.Consumer)
	if err != nil {
		return nil, err
	}
	return nil, consumer.Stop(ctx)
}
