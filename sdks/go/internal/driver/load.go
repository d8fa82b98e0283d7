// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	fila "github.com/fila-dev/fila-go"
)

// shownBytes is how much of each payload the answer to work has.
const shownBytes = 32

func timer(after time.Duration, run func()) *time.Timer { return time.AfterFunc(after, run) }

func (d *driver) produce(_ context.Context, one *request) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	ids, errs, seconds := produce(c, one)
	return table{"ids": ids, "errors": errs, "seconds": seconds}, nil
}

func produce(c *fila.Client, one *request) ([]any, []table, float64) {
	ids := make([]any, one.Count)
	errs := []table{}
	var mu sync.Mutex
	var number atomic.Int64
	var producers sync.WaitGroup
	began := time.Now()
	for range max(1, one.Concurrency) {
		producers.Go(func() {
			for at := int(number.Add(1)) - 1; at < one.Count; at = int(number.Add(1)) - 1 {
				ctx, cancel := one.within(context.Background(), bulkTimeout)
				id, err := c.Enqueue(ctx, one.Queue, one.Headers, numbered(at, one.Size))
				cancel()
				if err != nil {
					mu.Lock()
					errs = append(errs, described(err))
					mu.Unlock()
					continue
				}
				ids[at] = id
			}
		})
	}
	producers.Wait()
	return ids, errs, time.Since(began).Seconds()
}

// numbered is the payload of a number: the number, a space, and filling.
func numbered(at, size int) []byte {
	payload := append(strconv.AppendInt(make([]byte, 0, size+8), int64(at), 10), ' ')
	for len(payload) < size {
		payload = append(payload, 'x')
	}
	return payload
}

func (d *driver) work(ctx context.Context, one *request) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	ctx, cancel := one.within(ctx, bulkTimeout)
	defer cancel()
	began := time.Now()
	ids, payloads, err := work(ctx, c, one)
	return table{"ids": ids, "payloads": payloads, "seconds": time.Since(began).Seconds()}, err
}

// work handles and acks messages until there are enough, and stops.
func work(ctx context.Context, c *fila.Client, one *request) (ids, payloads []string, failed error) {
	consumer, err := c.Subscribe(one.Queue, one.consumeOptions()...)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	var begun atomic.Int64
	var workers sync.WaitGroup
	ids, payloads = []string{}, []string{}
	enough := make(chan struct{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	handle := func() error {
		for {
			if begun.Add(1) > int64(one.Count) { // others may fail: look again when the outcome is known
				begun.Add(-1)
				select {
				case <-enough:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(5 * time.Millisecond):
					continue
				}
			}
			message, err := consumer.Next(ctx)
			if err != nil {
				return err
			}
			if one.HandlerMS > 0 {
				time.Sleep(milliseconds(one.HandlerMS))
			}
			if message.Ack(ctx) != nil {
				begun.Add(-1) // it will come again
				continue
			}
			mu.Lock()
			ids = append(ids, message.ID)
			payloads = append(payloads, strings.ToValidUTF8(string(message.Payload[:min(shownBytes, len(message.Payload))]), "?"))
			if len(ids) == one.Count {
				close(enough)
			}
			mu.Unlock()
		}
	}
	for range max(1, one.Concurrency) {
		workers.Go(func() {
			if err := handle(); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	if len(ids) < one.Count {
		failed = context.Cause(ctx)
	}
	return ids, payloads, errors.Join(failed, consumer.Stop(context.Background()))
}

func (d *driver) latency(ctx context.Context, one *request) (table, error) {
	c, err := d.client(one)
	if err != nil {
		return nil, err
	}
	ctx, cancel := one.within(ctx, bulkTimeout)
	defer cancel()
	began := time.Now()
	took := make([]time.Duration, 0, one.Count)
	var sending sync.WaitGroup
	sending.Go(func() {
		for number := range one.Count {
			time.Sleep(time.Until(began.Add(time.Duration(float64(number) / one.Rate * float64(time.Second)))))
			sending.Go(func() {
				sent := map[string]string{"sent": strconv.FormatInt(int64(time.Since(began)), 10)}
				if _, err := c.Enqueue(ctx, one.Queue, sent, make([]byte, one.Size)); err != nil {
					cancel()
				}
			})
		}
	})
	var acking sync.WaitGroup
	for message, err := range c.Messages(ctx, one.Queue) {
		if err != nil {
			return nil, err
		}
		sent, err := strconv.ParseInt(message.Headers["sent"], 10, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began)-time.Duration(sent))
		acking.Go(func() { _ = message.Ack(ctx) })
		if len(took) == one.Count {
			break
		}
	}
	sending.Wait()
	acking.Wait()
	if len(took) < one.Count {
		return nil, cmp.Or(context.Cause(ctx), errors.New("messages are missing"))
	}
	slices.Sort(took)
	at := func(part int) float64 { return float64(took[len(took)*part/100].Nanoseconds()) / 1000 }
	return table{"p50_us": at(50), "p99_us": at(99)}, nil
}

func (d *driver) lifecycle(ctx context.Context, one *request) (table, error) {
	began := time.Now()
	var both sync.WaitGroup
	var produceErr, workErr error
	both.Go(func() { _, produceErr = d.produce(ctx, one) })
	both.Go(func() { _, workErr = d.work(ctx, one) })
	both.Wait()
	return table{"seconds": time.Since(began).Seconds()}, errors.Join(produceErr, workErr)
}
