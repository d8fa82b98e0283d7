// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	"github.com/fila-dev/fila-go/filav1"
)

// SetConfig sets an entry of the runtime configuration, which scripts and throttles read.
func (c *Client) SetConfig(ctx context.Context, key, value string) error {
	_, err := unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.SetConfigRequest, *filav1.SetConfigResponse] {
		return admin(conn).SetConfig
	}, &filav1.SetConfigRequest{Key: key, Value: value})
	return err
}

// GetConfig returns an entry. The error is [ErrConfigNotFound] when it is not set.
func (c *Client) GetConfig(ctx context.Context, key string) (string, error) {
	response, err := unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.GetConfigRequest, *filav1.GetConfigResponse] {
		return admin(conn).GetConfig
	}, &filav1.GetConfigRequest{Key: key})
	return response.GetValue(), err
}

// ListConfig returns the entries whose keys begin with a prefix.
func (c *Client) ListConfig(ctx context.Context, prefix string) (map[string]string, error) {
	ctx, cancel := c.bounded(ctx) // for all pages together
	defer cancel()
	found := map[string]string{}
	for entry, err := range c.entries(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		found[entry.GetKey()] = entry.GetValue()
	}
	return found, nil
}

func (c *Client) entries(ctx context.Context, prefix string) iter.Seq2[*filav1.ConfigEntry, error] {
	return pages(func(cursor string) ([]*filav1.ConfigEntry, string, error) {
		response, err := unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.ListConfigRequest, *filav1.ListConfigResponse] {
			return admin(conn).ListConfig
		}, &filav1.ListConfigRequest{Prefix: prefix, Cursor: cursor})
		return response.GetEntries(), response.GetCursor(), err
	})
}

// DeleteConfig removes an entry, and tells whether it was set.
func (c *Client) DeleteConfig(ctx context.Context, key string) (bool, error) {
	response, err := unary(ctx, c, true, "", func(conn grpc.ClientConnInterface) call[*filav1.DeleteConfigRequest, *filav1.DeleteConfigResponse] {
		return admin(conn).DeleteConfig
	}, &filav1.DeleteConfigRequest{Key: key})
	return response.GetExisted(), err
}

// throttlePrefix begins the configuration keys of limits.
const throttlePrefix = "throttle."

// Throttle is a limit for the messages of all queues that have a throttle key. Zero means no limit of that sort.
type Throttle struct {
	// Rate is in tokens a second. A message takes as many tokens as it costs, by default 1.
	Rate float64
	// Burst is how many tokens can be saved up. It needs a Rate.
	Burst float64
	// MaxInFlight bounds the messages that consumers hold at one time.
	MaxInFlight uint64
}

// SetThrottle limits a throttle key such as "provider:aws". It takes effect at once.
func (c *Client) SetThrottle(ctx context.Context, key string, limit Throttle) error {
	return c.SetConfig(ctx, throttlePrefix+key, limit.text())
}

// RemoveThrottle removes the limit of a throttle key, and tells whether there was one.
func (c *Client) RemoveThrottle(ctx context.Context, key string) (bool, error) {
	return c.DeleteConfig(ctx, throttlePrefix+key)
}

func (t Throttle) text() string {
	var parts []string
	if t.Rate != 0 {
		parts = append(parts, "rate="+strconv.FormatFloat(t.Rate, 'f', -1, 64))
	}
	if t.Burst != 0 {
		parts = append(parts, "burst="+strconv.FormatFloat(t.Burst, 'f', -1, 64))
	}
	if t.MaxInFlight != 0 {
		parts = append(parts, "max_in_flight="+strconv.FormatUint(t.MaxInFlight, 10))
	}
	return strings.Join(parts, ",")
}
