// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fila-dev/fila-go/filav1"
)

// What a broker that is silent, slow or hostile can make a client hold or do.

func TestCallsThatAreGivenUpHoldNoMemory(t *testing.T) {
	seen := make(chan *filav1.SettleRequest)
	f := &fake{settle: func(s filav1.FilaService_SettleServer) error { return silent(s.Recv, seen) }}
	c := fakeClient(t, f.start(t))
	for range smallWindow { // from here on nothing more fits onto the wire
		go func() { _ = c.Ack(context.Background(), "q", "waits") }()
		<-seen
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for at := range 1000 {
		if err := c.Ack(over, "q", fmt.Sprint(at)); !errors.Is(err, ErrCancelled) {
			t.Fatal(err)
		}
	}
	to := c.settles.open[""]
	to.mu.Lock()
	defer to.mu.Unlock()
	if got := len(to.gathered); got > 10 {
		t.Errorf("%d calls are held that nobody waits for", got)
	}
}

func TestBufferCountsWhatAMessageCosts(t *testing.T) {
	c := fakeClient(t, "127.0.0.1:1")
	if size := c.encoded(t.Context(), &EnqueueMessage{Queue: "q"}).size; size < itemBytes {
		t.Errorf("an empty message counts as %d bytes", size)
	}
}

// idleStream is a Consume stream that takes what is sent.
type idleStream struct{ consumeStream }

func (idleStream) Send(*filav1.ConsumeRequest) error { return nil }
func (idleStream) CloseSend() error                  { return nil }

func TestMoreThanTheCreditIsNotRead(t *testing.T) {
	c := fakeClient(t, "127.0.0.1:1")
	k := &Consumer{client: c, queue: "q", credit: 1, holding: newHolding(c, "q"), shelf: newShelf(), out: make(chan *ConsumeMessage)}
	k.waiting, k.stop = context.WithCancel(t.Context())
	s := &session{consumer: k, stream: idleStream{}, most: 1}
	ctx, cancel := context.WithCancel(t.Context())
	arrivals := make(chan arrival)
	loop := begun(func() { _ = s.loop(ctx, arrivals) })
	two := func(at int) []*ConsumeMessage {
		return []*ConsumeMessage{{ID: fmt.Sprint(at, "a"), LeaseID: "l"}, {ID: fmt.Sprint(at, "b"), LeaseID: "l"}}
	}
	out := k.Chan()
	arrivals <- arrival{messages: two(0)}
	for at := range 100 { // two messages are here: the broker has to wait until the program takes one
		select {
		case arrivals <- arrival{messages: two(at)}:
			t.Fatal("more is read")
		case <-out:
		}
		<-out
		arrivals <- arrival{messages: two(at)}
	}
	cancel()
	ends(t, "the loop", loop)
}

func TestMembersThatOthersNameAreBounded(t *testing.T) {
	c := fakeClient(t, "127.0.0.1:1")
	names := map[string]bool{}
	for port := range 5 * maxMembers {
		address := fmt.Sprintf("127.0.0.1:%d", port)
		to, failed := c.enqueuePipe(address)
		if failed != nil || to.pin != address {
			t.Fatalf("idle ones make no room for %s: %v", address, failed)
		}
		names[to.codec.(*enqueueCodec).producer] = true
		at, failed := c.members.at(address)
		if failed != nil || at.address != address {
			t.Fatalf("members that are away make no room for %s: %v", address, failed)
		}
	}
	if len(c.enqueues.open) > maxMembers+1 || len(c.members.open) > maxMembers {
		t.Errorf("%d streams, %d connections", len(c.enqueues.open), len(c.members.open))
	}
	if len(names) != 5*maxMembers {
		t.Errorf("%d names of producers for %d streams", len(names), 5*maxMembers)
	}
}

func TestPipeThatMadeRoomIsReplaced(t *testing.T) {
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		return taking(s, func(*filav1.EnqueueBatchRequest) {})
	}}
	address := f.start(t)
	c := fakeClient(t, address)
	c.members.learn("q", address)
	for range 2 {
		if _, err := c.Enqueue(within(t), "q", nil, nil); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		closed := c.enqueues.open[address]
		c.enqueues.closeIdle()
		c.mu.Unlock()
		if closed.submit(newEnqueueItem(c, "q")) {
			t.Error("a pipe that is closed takes messages")
		}
	}
}

func TestNamesThatAreNoAddressesAreIgnored(t *testing.T) {
	for _, name := range []string{"", "nowhere", "a:b:c", "host:70000", "host:-1", strings.Repeat("x", 300) + ":1"} {
		if got := fromContract(&filav1.Error{Owner: name}, "").owner; got != "" {
			t.Errorf("%q is taken for an address", name)
		}
	}
	for _, name := range []string{"host:1", "10.0.0.1:5555", "[::1]:5555", "[fe80::1%eth0]:5555"} {
		if got := namedAddress(name); got != name {
			t.Errorf("%q is no address", name)
		}
		if _, err := New(name); err != nil {
			t.Error(err)
		}
		if _, failed := newMembers(&settings{addresses: []string{name}, maxResponseBytes: 1}).at(""); failed != nil {
			t.Error(failed)
		}
	}
}

func TestPagesThatNeverEndAreAnError(t *testing.T) {
	asked := 0
	for _, err := range pages(func(string) ([]int, string, error) { asked++; return []int{1}, "again", nil }) {
		if err != nil && !errors.Is(err, ErrInternal) {
			t.Error(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	asked = 0
	_, err := sweep(0, func(uint64, string, bool) (uint64, string, error) { asked++; return 0, "again", nil })
	if !errors.Is(err, ErrInternal) || asked != 2 {
		t.Error(err, asked)
	}
}

func TestResponseThatIsTooLargeIsTold(t *testing.T) {
	large := delivery("1", 0)
	large.Payload = make([]byte, 2000)
	f := &fake{consume: delivering(make(chan uint64, 100), large)}
	c := fakeClient(t, f.start(t), WithMaxResponseBytes(1000))
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Next(within(t)); !errors.Is(err, ErrLimitExceeded) || !strings.Contains(err.Error(), "WithMaxResponseBytes") {
		t.Error(err)
	}
}

// blocked is a stream onto which nothing can be written after the first request, as to a peer that does not read.
type blocked struct {
	grpc.ClientStream
	sent bool
}

func (s *blocked) SendMsg(message any) error {
	if s.sent {
		<-s.Context().Done()
		return io.EOF
	}
	s.sent = true
	return s.ClientStream.SendMsg(message)
}

func TestStopDoesNotWaitForABrokerThatDoesNotRead(t *testing.T) {
	f := &fake{consume: delivering(make(chan uint64, 100), delivery("1", 0))}
	address := f.start(t)
	c := fakeClient(t, address)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(
		func(ctx context.Context, of *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, of, conn, method, options...)
			if err != nil {
				return nil, err
			}
			return &blocked{ClientStream: stream}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	c.members.open[address] = &member{address: address, conn: conn}
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	ends(t, "Stop", begun(func() { _ = consumer.Stop(context.Background()) }))
}

func TestAddressThatIsAwayIsDialledAtOnePace(t *testing.T) {
	away := &cutting{Listener: listen(t), cuts: 1 << 30}
	go func() { _, _ = away.Accept() }()
	c := fakeClient(t, away.Addr().String())
	at, failed := c.members.at("")
	if failed != nil {
		t.Fatal(failed)
	}
	for range 200 {
		if failed := at.ready(within(t)); !errors.Is(failed, ErrUnavailable) {
			t.Fatal(failed)
		}
		time.Sleep(2 * time.Millisecond) // time for a connection, if one is made
	}
	if dials := away.accepted.Load(); dials > 100 {
		t.Errorf("200 looks at it made %d connections", dials)
	}
}
