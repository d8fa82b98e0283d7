// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	fila "github.com/fila-dev/fila-go"
	"github.com/fila-dev/fila-go/internal/filatest"
)

// shared is one server for the tests that do not harm it.
var shared filatest.Shared

func server(t *testing.T) string {
	t.Helper()
	addr, err := shared.Addr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// The examples run against the server too. Without one they are left out, and tests that need one fail.
func TestMain(m *testing.M) {
	flag.Parse()
	addr, err := shared.Addr()
	if err == nil {
		address, err = addr, prepare(addr)
	}
	if err != nil {
		log.Print(err)
		_ = flag.Set("test.skip", "^Example")
	}
	code := m.Run()
	shared.End()
	os.Exit(code)
}

// prepare makes the queues of the examples.
func prepare(addr string) error {
	c, err := fila.New(addr)
	if err != nil {
		return err
	}
	for _, name := range []string{"orders", "mails", "invoices"} {
		err = errors.Join(err, c.CreateQueue(context.Background(), name, nil))
	}
	return errors.Join(err, c.Close())
}

func client(t *testing.T, address string, options ...fila.Option) *fila.Client {
	t.Helper()
	c, err := fila.New(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// queues counts those of all tests, which may run several times.
var queues atomic.Int64

// queue creates one that is the test's own.
func queue(t *testing.T, c *fila.Client, config *fila.QueueConfig) string {
	t.Helper()
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), queues.Add(1))
	if err := c.CreateQueue(deadline(t), name, config); err != nil {
		t.Fatal(err)
	}
	return name
}

func enqueue(t *testing.T, c *fila.Client, queue string, payloads ...string) {
	t.Helper()
	for _, payload := range payloads {
		if _, err := c.Enqueue(deadline(t), queue, nil, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
}

func receive(t *testing.T, messages <-chan *fila.ConsumeMessage) *fila.ConsumeMessage {
	t.Helper()
	select {
	case message, ok := <-messages:
		if !ok {
			t.Fatal("the channel was closed")
		}
		return message
	case <-time.After(20 * time.Second):
		t.Fatal("there is no message")
	}
	return nil
}

// eventually waits until figures of a queue are as they should be.
func eventually(t *testing.T, c *fila.Client, queue string, depth, inFlight uint64) {
	t.Helper()
	var last *fila.QueueSummary
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		found, err := c.Stats(deadline(t), queue)
		if err != nil {
			t.Fatal(err)
		}
		if last = found.GetSummary(); last.GetDepth() == depth && last.GetInFlight() == inFlight {
			return
		}
	}
	t.Fatalf("want depth %d and %d in flight, found %v", depth, inFlight, last)
}

func TestEnqueueConsumeAck(t *testing.T) {
	c := client(t, server(t))
	name := queue(t, c, &fila.QueueConfig{FairnessHeader: proto.String("tenant")})
	id, err := c.Enqueue(deadline(t), name, map[string]string{"tenant": "acme"}, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(deadline(t))
	messages, err := c.Consume(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	got := receive(t, messages)
	if got.ID != id || got.Queue != name || got.Headers["tenant"] != "acme" || string(got.Payload) != "hello" ||
		got.FairnessKey != "acme" || got.AttemptCount != 0 || got.LeaseID == "" || time.Since(got.EnqueuedAt) > time.Minute {
		t.Errorf("%+v", got)
	}
	if err := c.Ack(ctx, name, got.ID); err != nil {
		t.Error(err)
	}
	if err := got.Ack(ctx); !errors.Is(err, fila.ErrMessageNotFound) {
		t.Errorf("acked twice: %v", err)
	}
	cancel()
	for range messages {
		t.Error("a message after the end")
	}
	eventually(t, c, name, 0, 0)
}

func TestNackComesBackWithAnAttempt(t *testing.T) {
	c := client(t, server(t))
	name := queue(t, c, nil)
	enqueue(t, c, name, "x")
	messages, err := c.Consume(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	first := receive(t, messages)
	if err := c.Nack(deadline(t), name, first.ID, "by id"); err != nil {
		t.Fatal(err)
	}
	second := receive(t, messages)
	if second.AttemptCount != 1 {
		t.Errorf("%d attempts", second.AttemptCount)
	}
	if err := second.Release(deadline(t)); err != nil {
		t.Fatal(err)
	}
	third := receive(t, messages)
	if third.AttemptCount != 1 {
		t.Errorf("a release counts no attempt, found %d", third.AttemptCount)
	}
	began := time.Now()
	if err := third.Nack(deadline(t), "later", fila.RetryDelay(300*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	fourth := receive(t, messages)
	if time.Since(began) < 250*time.Millisecond || fourth.AttemptCount != 2 {
		t.Errorf("after %v with %d attempts", time.Since(began), fourth.AttemptCount)
	}
	if err := fourth.Reject(deadline(t), "unreadable"); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, name+".dlq", 1, 0)
	for letter, err := range c.Peek(deadline(t), name+".dlq", fila.PeekOptions{PayloadBytes: 10}) {
		if err != nil || string(letter.GetMessage().GetPayload()) != "x" {
			t.Error(letter, err)
		}
	}
	if count, err := c.Redrive(deadline(t), name+".dlq", fila.SweepOptions{}); err != nil || count != 1 {
		t.Error(count, err)
	}
	if err := receive(t, messages).Reject(deadline(t), "again"); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, name+".dlq", 1, 0)
	if count, err := c.Purge(deadline(t), name+".dlq", fila.SweepOptions{}); err != nil || count != 1 {
		t.Error(count, err)
	}
}

func TestStopCostsNoAttemptAndLetsTheProgramFinish(t *testing.T) {
	c := client(t, server(t))
	name := queue(t, c, &fila.QueueConfig{VisibilityTimeoutMs: proto.Uint64(900), MaxAttempts: proto.Uint32(1)})
	enqueue(t, c, name, "0", "1", "2", "3", "4")
	consumer, err := c.Subscribe(name, fila.MaxInFlight(5))
	if err != nil {
		t.Fatal(err)
	}
	held, err := consumer.Next(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, c, name, 0, 5)
	if err := consumer.Stop(deadline(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, name, 4, 1)
	time.Sleep(1500 * time.Millisecond) // longer than a lease lasts: it is extended after the stop
	if err := held.Ack(deadline(t)); err != nil {
		t.Errorf("what the program holds stays its own: %v", err)
	}
	seen := 0
	for message, err := range c.Messages(deadline(t), name) {
		if err != nil {
			t.Fatal(err)
		}
		if message.AttemptCount != 0 {
			t.Errorf("message %s lost an attempt", message.Payload)
		}
		if err := message.Ack(deadline(t)); err != nil {
			t.Error(err)
		}
		if seen++; seen == 4 {
			break
		}
	}
	eventually(t, c, name, 0, 0)
}

func TestCreditCanBeChanged(t *testing.T) {
	c := client(t, server(t))
	name := queue(t, c, nil)
	enqueue(t, c, name, "0", "1", "2", "3")
	consumer, err := c.Subscribe(name, fila.MaxInFlight(1))
	if err != nil {
		t.Fatal(err)
	}
	receive(t, consumer.Chan())
	eventually(t, c, name, 3, 1)
	if err := consumer.SetMaxInFlight(3); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, name, 1, 3)
}

func TestErrorsTellWhatHappened(t *testing.T) {
	c := client(t, server(t))
	ctx := deadline(t)
	name := queue(t, c, nil)
	_, enqueued := c.Enqueue(ctx, "nowhere", nil, nil)
	_, large := c.Enqueue(ctx, name, nil, make([]byte, 5<<20))
	_, statsErr := c.Stats(ctx, "nowhere")
	_, configErr := c.GetConfig(ctx, "throttle.none")
	_, consumed := c.Consume(ctx, "nowhere")
	for what, check := range map[string]struct{ err, want error }{
		"enqueue": {enqueued, fila.ErrQueueNotFound},
		"large":   {large, fila.ErrLimitExceeded},
		"stats":   {statsErr, fila.ErrQueueNotFound},
		"consume": {consumed, fila.ErrQueueNotFound},
		"create":  {c.CreateQueue(ctx, name, nil), fila.ErrQueueAlreadyExists},
		"name":    {c.CreateQueue(ctx, "a#b", nil), fila.ErrInvalidArgument},
		"ack":     {c.Ack(ctx, name, "01a1ee5b-d9aa-7c5b-a3f8-c1acfaf7e69b"), fila.ErrMessageNotFound},
		"config":  {configErr, fila.ErrConfigNotFound},
	} {
		var failed *fila.Error
		if !errors.Is(check.err, check.want) || !errors.As(check.err, &failed) || failed.Kind == "" {
			t.Errorf("%s: %v, want %v", what, check.err, check.want)
		}
	}
	if _, err := c.Enqueue(ctx, name, nil, []byte("small")); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	results, err := c.EnqueueMany(ctx, []fila.EnqueueMessage{{Queue: name}, {Queue: "nowhere"}, {Queue: name}})
	if !errors.Is(err, fila.ErrQueueNotFound) || results[0].Err != nil || results[1].Err == nil || results[2].ID == "" {
		t.Errorf("%v, %v", results, err)
	}
}

func TestQueuesConfigurationAndExplanations(t *testing.T) {
	c := client(t, server(t))
	ctx := deadline(t)
	name := queue(t, c, nil)
	changed, err := c.UpdateQueue(ctx, name, &fila.QueueConfig{MaxAttempts: proto.Uint32(7)})
	if err != nil || changed.GetMaxAttempts() != 7 {
		t.Error(changed, err)
	}
	enqueue(t, c, name, "x")
	if err := c.PauseQueue(ctx, name); err != nil {
		t.Error(err)
	}
	found, err := c.Explain(ctx, name, "")
	if err != nil || len(found.GetReasons()) == 0 || !strings.Contains(found.GetReasons()[0].GetCode().String(), "PAUSED") {
		t.Error(found, err)
	}
	if err := c.ResumeQueue(ctx, name); err != nil {
		t.Error(err)
	}
	queues, err := c.ListQueues(ctx)
	if err != nil || !slices.ContainsFunc(queues, func(q *fila.QueueSummary) bool { return q.GetName() == name+".dlq" }) {
		t.Error(queues, err)
	}
	if err := c.SetThrottle(ctx, "go:test", fila.Throttle{Rate: 5, Burst: 10}); err != nil {
		t.Error(err)
	}
	if entries, err := c.ListConfig(ctx, "throttle.go:"); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	if removed, err := c.RemoveThrottle(ctx, "go:test"); err != nil || !removed {
		t.Error(removed, err)
	}
	info, err := c.Describe(ctx)
	if err != nil || info.GetLimits().GetMaxPayloadBytes() == 0 {
		t.Error(info, err)
	}
	if count, err := c.DeleteQueue(ctx, name, true); err != nil || count != 1 {
		t.Error(count, err)
	}
}

func TestDelayPriorityAndDedupKey(t *testing.T) {
	c := client(t, server(t))
	name := queue(t, c, nil)
	ctx := deadline(t)
	first, err := c.Send(ctx, fila.EnqueueMessage{Queue: name, Payload: []byte("low"), DedupKey: "one", Priority: proto.Int32(9)})
	if err != nil || first.Duplicate {
		t.Error(first, err)
	}
	again, err := c.Send(ctx, fila.EnqueueMessage{Queue: name, Payload: []byte("low"), DedupKey: "one"})
	if err != nil || !again.Duplicate || again.ID != first.ID {
		t.Error(first, again, err)
	}
	if _, err := c.Enqueue(ctx, name, nil, []byte("high"), fila.Priority(0)); err != nil {
		t.Error(err)
	}
	if _, err := c.Enqueue(ctx, name, nil, []byte("later"), fila.Delay(400*time.Millisecond), fila.DedupKey("two")); err != nil {
		t.Error(err)
	}
	messages, err := c.Consume(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"high", "low", "later"} {
		if got := receive(t, messages); string(got.Payload) != want {
			t.Errorf("%s, want %s", got.Payload, want)
		}
	}
}
