// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	fila "github.com/fila-dev/fila-go"
)

func (d *driver) hello(context.Context, *request) (table, error) {
	return table{"sdk": "go", "version": fila.Version, "language": runtime.Version(), "grpc": grpc.Version}, nil
}

func (d *driver) connect(_ context.Context, one *request) (table, error) {
	options := []fila.Option{fila.WithAddresses(one.Addresses...)}
	if one.TLS != nil {
		options = append(options, fila.WithTLSFiles(fila.TLSFiles(*one.TLS)))
	}
	if one.APIKey != "" {
		options = append(options, fila.WithAPIKey(one.APIKey))
	}
	made, err := fila.New("", options...)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[one.clientName()] = made
	return nil, nil
}

func (d *driver) close(_ context.Context, one *request) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	delete(d.clients, one.clientName())
	d.mu.Unlock()
	return nil, c.Close()
}

// with runs an operation of a client within the time of its request.
func (d *driver) with(ctx context.Context, one *request, run func(context.Context, *fila.Client) (table, error)) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	ctx, cancel := one.within(ctx, defaultTimeout)
	defer cancel()
	return run(ctx, c)
}

func (d *driver) describe(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		found, err := c.Describe(ctx)
		return table{"version": found.GetVersion(), "max_payload_bytes": found.GetLimits().GetMaxPayloadBytes()}, err
	})
}

func (d *driver) createQueue(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		config := &fila.QueueConfig{}
		if len(one.Settings) > 0 {
			if err := protojson.Unmarshal(one.Settings, config); err != nil {
				return nil, err
			}
		}
		return nil, c.CreateQueue(ctx, one.Queue, config)
	})
}

func (d *driver) deleteQueue(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		_, err := c.DeleteQueue(ctx, one.Queue, true)
		return nil, err
	})
}

func (d *driver) listQueues(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		names := []string{}
		for queue, err := range c.Queues(ctx) {
			if err != nil {
				return nil, err
			}
			names = append(names, queue.GetName())
		}
		return table{"queues": names}, nil
	})
}

func (d *driver) stats(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		found, err := c.Stats(ctx, one.Queue)
		if err != nil {
			return nil, err
		}
		dead := uint64(0)
		if name := found.GetSummary().GetDeadLetterQueue(); name != "" {
			letters, err := c.Stats(ctx, name)
			if err != nil && !errors.Is(err, fila.ErrQueueNotFound) {
				return nil, err
			}
			dead = letters.GetSummary().GetDepth()
		}
		return table{"depth": found.GetSummary().GetDepth(), "in_flight": found.GetSummary().GetInFlight(), "dead_letters": dead}, nil
	})
}

func (d *driver) setConfig(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		return nil, c.SetConfig(ctx, one.Key, one.Value)
	})
}

func (d *driver) getConfig(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		value, err := c.GetConfig(ctx, one.Key)
		return table{"value": value}, err
	})
}

func (d *driver) deleteConfig(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		_, err := c.DeleteConfig(ctx, one.Key)
		return nil, err
	})
}

func (d *driver) listConfig(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		entries, err := c.ListConfig(ctx, one.Prefix)
		return table{"entries": entries}, err
	})
}

func (d *driver) explain(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		found, err := c.Explain(ctx, one.Queue, one.Message)
		reason := ""
		if reasons := found.GetReasons(); len(reasons) > 0 {
			reason = strings.TrimPrefix(reasons[0].GetCode().String(), "WAIT_CAUSE_")
		}
		return table{"reason": reason}, err
	})
}

func (d *driver) redrive(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		count, err := c.Redrive(ctx, one.Queue, fila.SweepOptions{})
		return table{"count": count}, err
	})
}

func (d *driver) peek(ctx context.Context, one *request) (table, error) {
	return d.with(ctx, one, func(ctx context.Context, c *fila.Client) (table, error) {
		ids := []string{}
		for message, err := range c.Peek(ctx, one.Queue, fila.PeekOptions{PageSize: uint32(one.Count)}) {
			if err != nil {
				return nil, err
			}
			if ids = append(ids, message.GetMessage().GetId()); len(ids) == one.Count {
				break
			}
		}
		return table{"ids": ids}, nil
	})
}

func (d *driver) resources(context.Context, *request) (table, error) {
	handles := 0
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		handles = len(open)
	}
	// Threads are the runtime's own: it keeps those that it has made.
	return table{"threads": 0, "tasks": runtime.NumGoroutine(), "handles": handles}, nil
}
