// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	fila "github.com/fila-dev/fila-go"
)

const (
	// defaultTimeout is of requests that name none, bulkTimeout of those that send or handle many messages.
	defaultTimeout = 5 * time.Second
	bulkTimeout    = 60 * time.Second
)

// request has the fields of all operations.
type request struct {
	ID          int64           `json:"id"`
	Op          string          `json:"op"`
	Client      string          `json:"client"`
	Addresses   []string        `json:"addresses"`
	TLS         *tlsFiles       `json:"tls"`
	APIKey      string          `json:"api_key"`
	Queue       string          `json:"queue"`
	Settings    json.RawMessage `json:"settings"`
	Key         string          `json:"key"`
	Value       string          `json:"value"`
	Prefix      string          `json:"prefix"`
	Messages    []outgoing      `json:"messages"`
	Consumer    string          `json:"consumer"`
	Message     string          `json:"message"`
	Error       string          `json:"error"`
	Count       int             `json:"count"`
	Size        int             `json:"size"`
	Concurrency int             `json:"concurrency"`
	MaxInFlight int             `json:"max_in_flight"`
	Rate        float64         `json:"rate"`
	DelayMS     int64           `json:"delay_ms"`
	ExtendMS    int64           `json:"extend_ms"`
	HandlerMS   int64           `json:"handler_ms"`
	AfterMS     int64           `json:"after_ms"`
	TimeoutMS   int64           `json:"timeout_ms"`
	outgoing
}

type tlsFiles struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"server_name"`
}

// outgoing is a message to enqueue. Its payload is base64, which encoding/json decodes.
type outgoing struct {
	Headers map[string]string `json:"headers"`
	Payload []byte            `json:"payload"`
	Options struct {
		DedupKey string `json:"dedup_key"`
		DelayMS  int64  `json:"delay_ms"`
		Priority *int32 `json:"priority"`
	} `json:"options"`
}

func (o *outgoing) to(queue string) fila.EnqueueMessage {
	return fila.EnqueueMessage{
		Queue: queue, Headers: o.Headers, Payload: o.Payload,
		Delay: milliseconds(o.Options.DelayMS), Priority: o.Options.Priority, DedupKey: o.Options.DedupKey,
	}
}

func (r *request) clientName() string { return cmp.Or(r.Client, "c") }

// within is the context of a request that may take so long.
func (r *request) within(ctx context.Context, otherwise time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(milliseconds(r.TimeoutMS), otherwise))
}

func (r *request) consumeOptions() []fila.ConsumeOption {
	if r.MaxInFlight == 0 {
		return nil
	}
	return []fila.ConsumeOption{fila.MaxInFlight(r.MaxInFlight)}
}

func milliseconds(count int64) time.Duration { return time.Duration(count) * time.Millisecond }
