// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/fila-dev/fila-go/filav1"
)

// A fake item of a window: whether somebody waits.
func testWindow() (*window[string], map[string]bool) {
	gone := map[string]bool{}
	return &window[string]{
		waits:   func(item string) bool { return !gone[item] },
		dropped: func(*batch[string]) {},
	}, gone
}

func made(name string, size int) func() *batch[string] {
	return func() *batch[string] {
		return &batch[string]{items: []string{name}, data: mem.BufferSlice{make(mem.SliceBuffer, size)}}
	}
}

func nothing() *batch[string] { return nil }

func TestWindowKeepsSmallBatchesBack(t *testing.T) {
	w, _ := testWindow()
	for range smallWindow {
		if w.next(0, made("a", 10)) == nil {
			t.Fatal("there is room")
		}
	}
	if w.next(0, made("b", 10)) != nil {
		t.Error("more than two small batches are in flight")
	}
	w.answered()
	if w.next(0, made("b", smallBytes)) == nil {
		t.Error("an answer makes room")
	}
	for w.next(0, made("c", smallBytes)) != nil {
	}
	if len(w.inFlight) != windowBatches {
		t.Errorf("%d large batches are in flight", len(w.inFlight))
	}
}

func TestManyCallersTravelTogetherAndNotInHalves(t *testing.T) {
	w, _ := testWindow()
	few := func() *batch[string] {
		return &batch[string]{items: make([]string, manyItems/2), data: mem.BufferSlice{make(mem.SliceBuffer, 10)}}
	}
	if w.next(manyItems, few) == nil {
		t.Fatal("nothing is in flight")
	}
	if w.next(manyItems/2-1, few) == nil {
		t.Error("so few may take turns")
	}
	w.answered()
	if w.next(manyItems/2, few) != nil {
		t.Error("so many wait for the answer to those in flight")
	}
	w.answered()
	if w.next(manyItems, few) == nil {
		t.Error("nothing is in flight any more")
	}
}

func TestCallersThatAreSetFreeAreAwaited(t *testing.T) {
	var c company
	now := time.Now()
	if c.awaits(1, now) {
		t.Error("nobody was set free")
	}
	c.free(3, now)
	for here := 1; here < 3; here++ {
		now = now.Add(comeBackWithin)
		if !c.awaits(here, now) {
			t.Errorf("with %d of 3 it waits for the next one", here)
		}
	}
	if c.awaits(3, now) {
		t.Error("all are back")
	}
}

func TestEnoughForABatchWaitForNobody(t *testing.T) {
	var c company
	now := time.Now()
	c.free(10*companyMost, now)
	if c.awaits(companyMost, now) || !c.awaits(companyMost-1, now) {
		t.Error("that many are enough, and fewer are not")
	}
}

func TestThoseThatDoNotComeBackAreAwaitedOnce(t *testing.T) {
	var c company
	now := time.Now()
	c.free(3, now)
	if !c.awaits(2, now) {
		t.Error("two have just come")
	}
	now = now.Add(comeBackWithin + 1)
	if c.awaits(2, now) {
		t.Error("none has come for a moment")
	}
	if c.size != 2 {
		t.Errorf("two were there, and it expects %d", c.size)
	}
	c.free(100, now)
	for here, end := 1, now.Add(comeBackMost); !now.After(end); here++ {
		if !c.awaits(here, now) {
			t.Fatal("they still come")
		}
		now = now.Add(comeBackWithin / 2)
	}
	if c.awaits(99, now) {
		t.Error("those that came first have waited long enough")
	}
}

func TestWhoIsAloneWaitsForNobody(t *testing.T) {
	var c company
	now := time.Now()
	c.free(1, now)
	if c.awaits(1, now) {
		t.Error("it was alone before")
	}
	c.free(50, now)
	if c.awaits(1, now.Add(comeBackWithin+1)) {
		t.Error("it comes long after the last answer")
	}
}

func TestWindowSendsAgainInOrderWithoutThoseNobodyWaitsFor(t *testing.T) {
	w, gone := testWindow()
	for _, name := range []string{"a", "b", "c"} {
		w.next(0, made(name, smallBytes))
	}
	gone["b"] = true
	w.lost()
	for _, want := range []string{"a", "c"} {
		if got := w.next(0, made("new", 1)); got.items[0] != want || !got.resent {
			t.Errorf("sent %v, want %s again", got.items, want)
		}
		if w.next(0, made("new", 1)) != nil {
			t.Errorf("%s is sent again alone", want)
		}
		w.answered()
	}
	if got := w.next(0, nothing); got != nil {
		t.Errorf("sent %v, want nothing", got.items)
	}
}

func TestWindowBlamesABatchThatWasRefusedAlone(t *testing.T) {
	w, _ := testWindow()
	w.next(0, made("a", smallBytes))
	w.next(0, made("b", smallBytes))
	if w.refused() != nil {
		t.Error("with two in flight nobody knows which one it was")
	}
	if got := w.next(0, nothing); got.items[0] != "a" {
		t.Fatalf("sent %v", got.items)
	}
	if w.next(0, nothing) != nil {
		t.Error("they are sent one at a time")
	}
	if blamed := w.refused(); blamed == nil || blamed.items[0] != "a" {
		t.Error("a was alone")
	}
	if got := w.next(0, nothing); got.items[0] != "b" {
		t.Error("b goes on")
	}
}

func TestBackoffDoublesWithJitterToASecond(t *testing.T) {
	var b backoff
	for most := backoffFirst; most <= 4*backoffMost; most *= 2 {
		bound := min(most, backoffMost)
		if wait := b.next(); wait < bound/2 || wait > bound {
			t.Errorf("waits %v, want at most %v and at least half of it", wait, bound)
		}
	}
	b.reset()
	if wait := b.next(); wait > backoffFirst {
		t.Errorf("begins anew with %v", wait)
	}
}

func TestPauseDoesNotOutlastTheDeadline(t *testing.T) {
	c := fakeClient(t, "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if c.pause(ctx, time.Hour) || ctx.Err() != nil {
		t.Error("it waited")
	}
	if !c.pause(t.Context(), time.Millisecond) {
		t.Error("it did not wait")
	}
}

func TestBrokerCannotAskForEver(t *testing.T) {
	var b backoff
	if wait := b.after(10 * time.Second); wait != 10*time.Second {
		t.Errorf("asked for 10 s, waits %v", wait)
	}
	if wait := b.after(math.MaxUint32 * time.Millisecond); wait != askedMost {
		t.Errorf("asked for 49 days, waits %v", wait)
	}
}

func TestEveryKindOfTheContractHasAnError(t *testing.T) {
	for number, name := range filav1.ErrorKind_name {
		if number == 0 {
			continue
		}
		if len(byKind[kindOf(filav1.ErrorKind(number))]) == 0 {
			t.Errorf("%s belongs to no error", name)
		}
	}
}

func TestErrorsAreDecidedByKind(t *testing.T) {
	full, err := status.New(codes.ResourceExhausted, "no room").WithDetails(&filav1.Error{
		Kind: filav1.ErrorKind_ERROR_KIND_QUEUE_FULL, Retryable: true, RetryAfterMs: 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, lost := fromStatus(full.Err())
	if lost || !errors.Is(got, ErrQueueFull) || !errors.Is(got, ErrOverloaded) || errors.Is(got, ErrUnavailable) {
		t.Errorf("%v, lost %v", got, lost)
	}
	if got.Message != "no room" || !got.Retryable || got.RetryAfter != 40*time.Millisecond {
		t.Errorf("%+v", got)
	}
	later := fromContract(&filav1.Error{Kind: 4711, Code: int32(codes.FailedPrecondition)}, "")
	if later.Kind != "KIND_4711" || !errors.Is(later, ErrFailedPrecondition) {
		t.Errorf("a kind of a later server is %v", later)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.Canceled, codes.Internal, codes.Unknown} {
		if got, lost := fromStatus(status.Error(code, "queue not found")); !lost || !errors.Is(got, ErrUnavailable) {
			t.Errorf("%v without details is a lost connection, not %v", code, got)
		}
	}
}

func TestErrorsOfContexts(t *testing.T) {
	own := errors.New("the user has gone")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(own)
	if err := fromContext(cancelled, nil); !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled) || !errors.Is(err, own) {
		t.Error(err)
	}
	expired, end := context.WithDeadlineCause(t.Context(), time.Now(), own)
	defer end()
	err := fromContext(expired, unavailable("away", nil))
	if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, own) || !strings.Contains(err.Error(), "away") {
		t.Error(err)
	}
	told, lost := fromStatus(status.Error(codes.DeadlineExceeded, "too late"))
	if lost || !errors.Is(told, ErrTimeout) || !errors.Is(told, context.DeadlineExceeded) {
		t.Errorf("a deadline that the broker saw first: %v, lost %v", told, lost)
	}
}

func TestKeyOfAFileIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fila_one\n")
	key, err := newAPIKey("", path)
	if err != nil {
		t.Fatal(err)
	}
	write("fila_second\n")
	if header, _ := key.read(); header != "Bearer fila_second" {
		t.Errorf("sends %q", header)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if header, _ := key.read(); header != "Bearer fila_second" {
		t.Errorf("without the file it sends %q", header)
	}
	for _, bad := range []string{"", "two words", "é"} {
		if _, err := newAPIKey(bad, ""); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q is no key: %v", bad, err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.pem")
	for name, options := range map[string][]Option{
		"timeout": {WithTimeout(0)},
		"buffer":  {WithBufferBytes(-1)},
		"ca":      {WithTLSFiles(TLSFiles{CA: missing})},
		"pair":    {WithTLSFiles(TLSFiles{Cert: missing})},
		"cert":    {WithTLSFiles(TLSFiles{Cert: missing, Key: missing})},
		"key":     {WithAPIKeyFile(missing)},
		"address": {WithAddresses("")},
	} {
		if _, err := New("localhost:1", options...); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"", "localhost", "http://localhost:5555", "localhost:port", "a:1,b:1"} {
		if _, err := New(address); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, count := range []int{0, -1, 70_000} {
		if MaxInFlight(count)(&Consumer{}) == nil {
			t.Errorf("a credit of %d is taken", count)
		}
	}
}

func TestHoldingExtendsEachLeaseFromItsSecondTurn(t *testing.T) {
	h := newHolding(nil, "q")
	h.add([]*ConsumeMessage{{ID: "1", LeaseID: "a"}, {ID: "2", LeaseID: "a"}})
	if due := h.due(); len(due) != 0 {
		t.Errorf("a new lease is extended: %v", due)
	}
	h.forget("a", "1")
	if due := h.due(); len(due) != 1 || len(due[0].ids) != 1 || due[0].ids[0] != "2" || due[0].lease != "a" {
		t.Errorf("extends %v, want message 2 of lease a", due)
	}
	h.end()
	if _, over := h.turn(); over {
		t.Error("what the program holds is extended after the end of the consumer")
	}
	h.forgetAny("2")
	if _, over := h.turn(); !over {
		t.Error("there is nothing left")
	}
}

func TestHoldingForgetsByIDWhateverTheLease(t *testing.T) {
	h := newHolding(nil, "q")
	h.add([]*ConsumeMessage{{ID: "1", LeaseID: "a"}})
	h.add([]*ConsumeMessage{{ID: "1", LeaseID: "b"}}) // it was delivered again
	h.forgetAny("1")
	h.due()
	if due := h.due(); len(due) != 1 || due[0].lease != "a" {
		t.Errorf("extends %v, want the lease that ended, until it is refused", due)
	}
	h.forget("a", "1")
	if len(h.leases)+len(h.under) != 0 {
		t.Error(h.leases, h.under)
	}
}

func TestHoldingExtendsInPortionsAtABearablePace(t *testing.T) {
	h := newHolding(nil, "q")
	for at := range 2*maxBatchIDs + 1 {
		h.add([]*ConsumeMessage{{ID: fmt.Sprint(at), LeaseID: "a"}})
	}
	h.due()
	if due := h.due(); len(due) != 3 || len(due[0].ids) != maxBatchIDs || len(due[2].ids) != 1 {
		t.Errorf("%d portions", len(due))
	}
	h.lasts(1)
	if wait, _ := h.turn(); wait != extendEvery {
		t.Errorf("a visibility timeout of a nanosecond is extended every %v", wait)
	}
	h.lasts(30 * time.Second)
	if wait, _ := h.turn(); wait != 10*time.Second {
		t.Errorf("one of 30 s is extended every %v", wait)
	}
}

func TestSettleNamesAMessageOnceInABatch(t *testing.T) {
	var codec settleCodec
	one := newSettleItem(settlement{kind: settleExtend, queue: "q", lease: "a", ids: []string{"1"}})
	two := newSettleItem(settlement{kind: settleAck, queue: "q", lease: "a", ids: []string{"1"}})
	gone := newSettleItem(settlement{kind: settleAck, queue: "q", lease: "a", ids: []string{"2"}})
	gone.abandon()
	first, rest := codec.makeBatch([]*settleItem{gone, one, two})
	if len(first.items) != 1 || first.items[0] != one || len(rest) != 1 {
		t.Fatalf("first %d, rest %d", len(first.items), len(rest))
	}
	second, rest := codec.makeBatch(rest)
	if second.items[0] != two || rest != nil || second.sequence != first.sequence+1 {
		t.Error("the second follows in a batch of its own")
	}
}

func TestAckThatWasSentAgainAndFindsItsMessageGoneIsDone(t *testing.T) {
	failures := map[messageName]*Error{
		{"q", "gone"}:  {Kind: kindMessageGone},
		{"q", "ended"}: {Kind: "LEASE_ENDED"},
	}
	ack := newSettleItem(settlement{kind: settleAck, queue: "q", ids: []string{"gone", "ended", "fine"}})
	if got := ack.failuresIn(failures, true); len(got) != 1 || got["ended"] == nil {
		t.Errorf("sent again: %v", got)
	}
	if got := ack.failuresIn(failures, false); len(got) != 2 {
		t.Errorf("sent once: %v", got)
	}
	nack := newSettleItem(settlement{kind: settleNack, queue: "q", ids: []string{"gone"}})
	if got := nack.failuresIn(failures, true); len(got) != 1 {
		t.Errorf("a nack of a message that is gone has failed: %v", got)
	}
}

func TestThrottleAsText(t *testing.T) {
	for want, limit := range map[string]Throttle{
		"rate=50,burst=100,max_in_flight=20": {Rate: 50, Burst: 100, MaxInFlight: 20},
		"rate=0.1":                           {Rate: 0.1},
		"max_in_flight=5":                    {MaxInFlight: 5},
		"rate=1000000000000":                 {Rate: 1e12},
	} {
		if got := limit.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSweepStopsAtItsCount(t *testing.T) {
	var asked []uint64
	done, err := sweep(12_000, func(count uint64, _ string, final bool) (uint64, string, error) {
		asked = append(asked, count)
		if final != (len(asked) == 2) {
			t.Error("the last call says so")
		}
		return count, "more", nil
	})
	if done != 12_000 || err != nil || len(asked) != 2 || asked[1] != 2_000 {
		t.Error(done, err, asked)
	}
}
