// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	fila "github.com/fila-dev/fila-go"
	"github.com/fila-dev/fila-go/internal/filatest"
)

func TestServerKilledWhileProducing(t *testing.T) {
	s := filatest.Start(t, "")
	c := client(t, s.Addr)
	name := queue(t, c, nil)
	const count = 4000
	ids := make([]string, count)
	next := make(chan int)
	var producers sync.WaitGroup
	for range 20 {
		producers.Go(func() {
			for at := range next {
				id, err := c.Enqueue(deadline(t), name, nil, fmt.Append(nil, at))
				if err != nil {
					t.Error(err)
				}
				ids[at] = id
			}
		})
	}
	for at := range count {
		if at == count/3 || at == 2*count/3 {
			s.Kill()
			s.Again(t)
		}
		next <- at
	}
	close(next)
	producers.Wait()
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	if unique := slices.Compact(sorted); len(unique) != count {
		t.Errorf("%d ids of %d", len(unique), count)
	}
	eventually(t, c, name, count, 0) // nothing lost, nothing twice
	seen := map[string]struct{}{}
	var acks sync.WaitGroup
	for message, err := range c.Messages(deadline(t), name, fila.MaxInFlight(1000)) {
		if err != nil {
			t.Fatal(err)
		}
		seen[string(message.Payload)] = struct{}{}
		acks.Go(func() {
			if err := message.Ack(deadline(t)); err != nil {
				t.Error(err)
			}
		})
		if len(seen) == count {
			break
		}
	}
	acks.Wait()
	if len(seen) != count {
		t.Errorf("%d messages of %d", len(seen), count)
	}
	eventually(t, c, name, 0, 0)
}

func TestConsumerGoesOnAfterARestart(t *testing.T) {
	s := filatest.Start(t, "")
	c := client(t, s.Addr)
	name := queue(t, c, nil)
	messages, err := c.Consume(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, c, name, "before")
	if err := receive(t, messages).Ack(deadline(t)); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Again(t)
	enqueue(t, c, name, "after")
	got := receive(t, messages)
	if err := got.Ack(deadline(t)); err != nil || string(got.Payload) != "after" {
		t.Error(string(got.Payload), err)
	}
}

func TestDeadlinesCancellationAndClose(t *testing.T) {
	c := client(t, "127.0.0.1:1")
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Enqueue(short, "q", nil, nil); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fila.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
	cancelled, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	if _, err := c.Enqueue(cancelled, "q", nil, nil); !errors.Is(err, fila.ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = c.Close() })
	if _, err := c.Enqueue(t.Context(), "q", nil, nil); !errors.Is(err, fila.ErrClosed) {
		t.Errorf("closed meanwhile: %v", err)
	}
	_, described := c.Describe(t.Context())
	_, subscribed := c.Subscribe("q")
	for _, err := range []error{described, subscribed, c.Ack(t.Context(), "q", "1")} {
		if !errors.Is(err, fila.ErrClosed) {
			t.Errorf("closed before: %v", err)
		}
	}
}

func TestNextAddressIsUsed(t *testing.T) {
	c := client(t, "127.0.0.1:1", fila.WithAddresses(server(t)))
	enqueue(t, c, queue(t, c, nil), "x")
}

func TestClosedClientsLeaveNothingBehind(t *testing.T) {
	address := server(t)
	name := queue(t, client(t, address), nil)
	round := func() {
		c, err := fila.New(address)
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, c, name, "x")
		consumer, err := c.Subscribe(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := receive(t, consumer.Chan()).Ack(deadline(t)); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	round()
	before, files := runtime.NumGoroutine(), openFiles(t)
	for range 10 {
		round()
	}
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before || openFiles(t) > files; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before %d; %d files, before %d\n%s", runtime.NumGoroutine(), before, openFiles(t), files, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil { // a system that does not tell
		return 0
	}
	return len(open)
}
