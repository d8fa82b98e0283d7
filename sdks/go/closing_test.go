// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/fila-dev/fila-go/filav1"
)

// busyFor is longer than a test may last: what waits for it has to be ended by Close.
const busyFor = 10 * 60 * 1000

func TestCloseEndsCallsThatWaitToBeSentAgain(t *testing.T) {
	busy := &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_OVERLOADED, Retryable: true, RetryAfterMs: busyFor}
	refused := make(chan struct{})
	f := &fake{
		enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			_ = s.Send(&filav1.EnqueueBatchResponse{Sequence: request.GetSequence(), Error: busy})
			refused <- struct{}{}
			<-s.Context().Done()
			return nil
		},
		settle: func(s filav1.FilaService_SettleServer) error {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			_ = s.Send(&filav1.SettleResponse{Sequence: request.GetSequence(), Error: busy})
			refused <- struct{}{}
			<-s.Context().Done()
			return nil
		},
		describe: func(context.Context) (*filav1.DescribeResponse, error) {
			refused <- struct{}{}
			return nil, refusal(codes.ResourceExhausted, busy)
		},
	}
	address := f.start(t)
	hour, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, call := range map[string]func(*Client) error{
		"Enqueue":  func(c *Client) error { _, err := c.Enqueue(hour, "q", nil, nil); return err },
		"Ack":      func(c *Client) error { return c.Ack(hour, "q", "1") },
		"Describe": func(c *Client) error { _, err := c.Describe(hour); return err },
	} {
		c := fakeClient(t, address)
		done := begun(func() {
			if err := call(c); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		})
		<-refused
		time.Sleep(100 * time.Millisecond) // the refusal arrives, and the call waits
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		ends(t, name, done)
	}
}

func TestCloseOfABusyClientLeavesNoGoroutine(t *testing.T) {
	sent, acked := make(chan *filav1.EnqueueBatchRequest), make(chan *filav1.SettleRequest)
	asked := make(chan struct{})
	f := &fake{ // a broker that answers nothing
		enqueue: func(s filav1.FilaService_EnqueueStreamServer) error { return silent(s.Recv, sent) },
		settle:  func(s filav1.FilaService_SettleServer) error { return silent(s.Recv, acked) },
		describe: func(ctx context.Context) (*filav1.DescribeResponse, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		consume: func(s filav1.FilaService_ConsumeServer) error {
			_ = s.SendHeader(metadata.Pairs(visibilityHeader, "30000"))
			for {
				if _, err := s.Recv(); err != nil {
					return nil
				}
			}
		},
	}
	address := f.start(t)
	round := func() {
		c := fakeClient(t, address, WithBufferBytes(1))
		ctx, cancel := context.WithCancel(t.Context()) // it outlives the client
		defer cancel()
		k, err := c.Subscribe("q")
		if err != nil {
			t.Fatal(err)
		}
		<-k.opened
		messages, err := c.Consume(ctx, "q")
		if err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() { _, _ = k.Next(context.Background()) })
		waiting.Go(func() {
			for range messages {
				t.Error("a message")
			}
		})
		for range 2 { // the second has no room in the buffer
			waiting.Go(func() { _, _ = c.Enqueue(ctx, "q", nil, nil) })
		}
		waiting.Go(func() { _ = c.Ack(ctx, "q", "1") })
		waiting.Go(func() { _, _ = c.Describe(ctx) })
		<-sent
		<-acked
		<-asked
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		waiting.Wait()
	}
	round()
	before := runtime.NumGoroutine()
	for range 5 {
		round()
	}
	for ctx := within(t); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func TestEveryCloseWaitsForTheEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f := &fake{consume: func(s filav1.FilaService_ConsumeServer) error {
		_ = s.SendHeader(metadata.Pairs(visibilityHeader, "30000"))
		for {
			if _, err := s.Recv(); err != nil { // the goodbye
				close(entered)
				<-leave
				return nil
			}
		}
	}}
	c := fakeClient(t, f.start(t))
	k, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	<-k.opened
	first := begun(func() { _ = c.Close() })
	<-entered
	time.AfterFunc(100*time.Millisecond, func() { close(leave) })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-k.ended:
	default:
		t.Error("the second Close has returned before the first")
	}
	ends(t, "Close", first)
}

func TestCloseGivesBackWhatTheProgramWasNeverHanded(t *testing.T) {
	reported := make(chan uint64, 100)
	hold := make(chan struct{})
	released := make(chan *filav1.SettleRequest, 1)
	f := &fake{
		consume: delivering(reported, delivery("1", filav1.Isolation_ISOLATION_SUSPECT)),
		settle: func(s filav1.FilaService_SettleServer) error {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			<-hold
			released <- request
			return s.Send(&filav1.SettleResponse{Sequence: request.GetSequence()})
		},
	}
	c := fakeClient(t, f.start(t))
	if _, err := c.Subscribe("q"); err != nil {
		t.Fatal(err)
	}
	<-reported
	time.AfterFunc(100*time.Millisecond, func() { close(hold) })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case request := <-released:
		if len(request.GetNacks()) != 1 || !request.GetNacks()[0].GetRelease() {
			t.Error(request)
		}
	default:
		t.Error("Close has not waited")
	}
}

// counted is a context that tells how many functions wait for its end.
type counted struct {
	context.Context
	waiting, all atomic.Int32
}

func (c *counted) AfterFunc(run func()) func() bool {
	c.waiting.Add(1)
	c.all.Add(1)
	stop := context.AfterFunc(c.Context, run)
	return func() bool {
		c.waiting.Add(-1)
		return stop()
	}
}

// Value hides that the context is one of the standard library, whose functions nobody else can count.
func (*counted) Value(any) any { return nil }

func TestConsumerThatEndedLeavesNothingInItsContext(t *testing.T) {
	f := &fake{consume: func(filav1.FilaService_ConsumeServer) error {
		return refusal(codes.NotFound, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_QUEUE_NOT_FOUND})
	}}
	c := fakeClient(t, f.start(t))
	ctx := &counted{Context: within(t)}
	for range 10 {
		if _, err := c.Consume(ctx, "q"); !errors.Is(err, ErrQueueNotFound) {
			t.Fatal(err)
		}
	}
	if ctx.all.Load() < 10 {
		t.Fatal("nothing was counted")
	}
	for ctx.waiting.Load() > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%d consumers are held", ctx.waiting.Load())
		}
		time.Sleep(time.Millisecond)
	}
}
