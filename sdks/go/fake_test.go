// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fila-dev/fila-go/filav1"
)

// fake is a broker whose behaviour a test writes.
type fake struct {
	filav1.UnimplementedFilaServiceServer
	filav1.UnimplementedFilaAdminServer
	enqueue  func(filav1.FilaService_EnqueueStreamServer) error
	consume  func(filav1.FilaService_ConsumeServer) error
	settle   func(filav1.FilaService_SettleServer) error
	describe func(context.Context) (*filav1.DescribeResponse, error)
	purge    func() (*filav1.PurgeResponse, error)
}

func (f *fake) EnqueueStream(s filav1.FilaService_EnqueueStreamServer) error { return f.enqueue(s) }
func (f *fake) Consume(s filav1.FilaService_ConsumeServer) error             { return f.consume(s) }
func (f *fake) Settle(s filav1.FilaService_SettleServer) error               { return f.settle(s) }

func (f *fake) Describe(ctx context.Context, _ *filav1.DescribeRequest) (*filav1.DescribeResponse, error) {
	return f.describe(ctx)
}

func (f *fake) Purge(context.Context, *filav1.PurgeRequest) (*filav1.PurgeResponse, error) {
	return f.purge()
}

func (f *fake) start(t *testing.T) string {
	t.Helper()
	return f.serve(t, listen(t))
}

func (f *fake) serve(t *testing.T, listener net.Listener, options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(options...)
	filav1.RegisterFilaServiceServer(server, f)
	filav1.RegisterFilaAdminServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// cutting accepts connections and ends the first ones at once.
type cutting struct {
	net.Listener
	cuts     int
	accepted atomic.Int32
}

func (l *cutting) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || int(l.accepted.Add(1)) > l.cuts {
			return conn, err
		}
		_ = conn.Close()
	}
}

// ends waits for what must end: a test that hangs does not tell why.
func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " does not end")
	}
}

// begun runs something in the background; the channel is closed when it has ended.
func begun(run func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	return done
}

// silent takes requests, counts them, and answers nothing.
func silent[Request any](receive func() (Request, error), seen chan<- Request) error {
	for {
		request, err := receive()
		if err != nil {
			return nil
		}
		seen <- request
	}
}

func fakeClient(t *testing.T, address string, options ...Option) *Client {
	t.Helper()
	c, err := New(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// refusal is a status with the error of the contract.
func refusal(code codes.Code, of *filav1.Error) error {
	made, err := status.New(code, "refused").WithDetails(of)
	if err != nil {
		panic(err)
	}
	return made.Err()
}

// taking answers every batch, and gives each message an id of its batch and place.
func taking(s filav1.FilaService_EnqueueStreamServer, seen func(*filav1.EnqueueBatchRequest)) error {
	for {
		request, err := s.Recv()
		if err != nil {
			return nil
		}
		seen(request)
		response := &filav1.EnqueueBatchResponse{Sequence: request.GetSequence()}
		for at := range request.GetMessages() {
			response.Results = append(response.Results, &filav1.EnqueueResult{MessageId: fmt.Sprintf("%d-%d", request.GetSequence(), at)})
		}
		if err := s.Send(response); err != nil {
			return err
		}
	}
}

func TestLostBatchIsSentAgainUnderItsNumber(t *testing.T) {
	var streams atomic.Int32
	var first *filav1.EnqueueBatchRequest
	var again []*filav1.EnqueueBatchRequest
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		if streams.Add(1) == 1 {
			first, _ = s.Recv()
			return status.Error(codes.Unavailable, "lost")
		}
		return taking(s, func(r *filav1.EnqueueBatchRequest) { again = append(again, r) })
	}}
	c := fakeClient(t, f.start(t))
	id, err := c.Enqueue(within(t), "q", nil, []byte("x"))
	if err != nil || id != "1-0" {
		t.Fatal(id, err)
	}
	if len(again) != 1 || again[0].GetSequence() != first.GetSequence() || again[0].GetProducerId() != first.GetProducerId() {
		t.Errorf("first %v, again %v", first, again)
	}
}

func TestLostBatchThatIsRefusedMeanwhileKeepsItsNumber(t *testing.T) {
	var streams atomic.Int32
	var mu sync.Mutex
	var after []uint64
	seen, lose := make(chan struct{}), make(chan struct{})
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		switch streams.Add(1) {
		case 1: // both are taken, and the answers are lost
			for range 2 {
				if _, err := s.Recv(); err != nil {
					return nil
				}
				seen <- struct{}{}
			}
			<-lose
			return status.Error(codes.Unavailable, "lost")
		case 2:
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			_ = s.Send(&filav1.EnqueueBatchResponse{
				Sequence: request.GetSequence(), Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_OVERLOADED, Retryable: true},
			})
			_, _ = s.Recv()
			return nil
		}
		return taking(s, func(r *filav1.EnqueueBatchRequest) {
			mu.Lock()
			defer mu.Unlock()
			after = append(after, r.GetSequence())
		})
	}}
	c := fakeClient(t, f.start(t))
	var calls sync.WaitGroup
	for _, want := range []string{"1-0", "2-0"} {
		calls.Go(func() {
			if id, err := c.Enqueue(within(t), "q", nil, nil); err != nil || id != want {
				t.Errorf("%q, %v: under another number it would be enqueued twice", id, err)
			}
		})
		<-seen
	}
	close(lose)
	calls.Wait()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(after, []uint64{1, 2}) {
		t.Errorf("after the refusal %v are sent", after)
	}
}

// untilWaiting waits until so many messages are on their way.
func untilWaiting(t *testing.T, c *Client, want int) {
	t.Helper()
	to, failed := c.enqueuePipe("")
	if failed != nil {
		t.Fatal(failed)
	}
	count := func() int {
		to.mu.Lock()
		defer to.mu.Unlock()
		count := len(to.gathered)
		for _, each := range to.window.inFlight {
			count += len(each.items)
		}
		return count
	}
	for ctx := within(t); count() < want; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d messages of %d", count(), want)
		}
	}
}

func TestManyCallsTravelTogether(t *testing.T) {
	var batches atomic.Int32
	hold := make(chan struct{})
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		<-hold
		return taking(s, func(*filav1.EnqueueBatchRequest) { batches.Add(1) })
	}}
	c := fakeClient(t, f.start(t))
	var calls sync.WaitGroup
	for range 500 {
		calls.Go(func() {
			if _, err := c.Enqueue(within(t), "q", nil, []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	untilWaiting(t, c, 500)
	close(hold)
	calls.Wait()
	if got := batches.Load(); got > 10 {
		t.Errorf("500 calls took %d batches", got)
	}
}

func TestWhoWasSetFreeWithOthersTravelsWithThem(t *testing.T) {
	sizes := make(chan int, 10)
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		return taking(s, func(r *filav1.EnqueueBatchRequest) { sizes <- len(r.GetMessages()) })
	}}
	c := fakeClient(t, f.start(t))
	to, failed := c.enqueuePipe("")
	if failed != nil {
		t.Fatal(failed)
	}
	later := time.Now().Add(time.Hour)
	to.company = company{size: 2, back: 1, freed: later, last: later} // the wait for the second one does not end
	var calls sync.WaitGroup
	call := func() {
		if _, err := c.Enqueue(within(t), "q", nil, []byte("x")); err != nil {
			t.Error(err)
		}
	}
	calls.Go(call)
	untilWaiting(t, c, 1)
	select {
	case <-sizes:
		t.Fatal("sent alone, although another one was set free as well")
	case <-time.After(100 * time.Millisecond):
	}
	calls.Go(call)
	calls.Wait()
	if got := <-sizes; got != 2 {
		t.Errorf("%d travel together", got)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.company.size != 2 || time.Since(to.company.freed) > time.Minute {
		t.Errorf("the answer says who is set free: %+v", to.company)
	}
}

func TestBatchesThatAreSentOneAtATimeAreAllSent(t *testing.T) {
	var streams atomic.Int32
	seen := make(chan uint64)
	refuse := make(chan struct{})
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		if streams.Add(1) > 1 {
			return taking(s, func(*filav1.EnqueueBatchRequest) {})
		}
		for range 2 {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			seen <- request.GetSequence()
		}
		<-refuse
		return refusal(codes.PermissionDenied, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_PERMISSION_DENIED})
	}}
	c := fakeClient(t, f.start(t))
	call := func() {
		if _, err := c.Enqueue(within(t), "q", nil, nil); err != nil {
			t.Error(err)
		}
	}
	first := begun(call)
	<-seen
	second := begun(call)
	<-seen
	close(refuse) // of two: they are sent one at a time, and nobody else calls
	ends(t, "the first", first)
	ends(t, "the second", second)
}

func TestRefusalThatPassesIsWaitedOut(t *testing.T) {
	var tries atomic.Int32
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			result := &filav1.EnqueueResult{MessageId: "id"}
			if tries.Add(1) == 1 {
				result = &filav1.EnqueueResult{Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_QUEUE_FULL, Retryable: true, RetryAfterMs: 150}}
			}
			if err := s.Send(&filav1.EnqueueBatchResponse{Sequence: request.GetSequence(), Results: []*filav1.EnqueueResult{result}}); err != nil {
				return err
			}
		}
	}}
	c := fakeClient(t, f.start(t))
	began := time.Now()
	if _, err := c.Enqueue(within(t), "q", nil, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("it waited %v only", took)
	}
}

func TestOwnerIsFollowed(t *testing.T) {
	owner := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		return taking(s, func(*filav1.EnqueueBatchRequest) {})
	}}
	address := owner.start(t)
	inBand := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		request, err := s.Recv()
		if err != nil {
			return nil
		}
		_ = s.Send(&filav1.EnqueueBatchResponse{Sequence: request.GetSequence(), Results: []*filav1.EnqueueResult{
			{Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_NOT_OWNER, Retryable: true, Owner: address}},
		}})
		_, _ = s.Recv()
		return nil
	}}
	trailer := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		s.SetTrailer(metadata.Pairs(ownerTrailer, address))
		return refusal(codes.Unavailable, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_NOT_OWNER, Retryable: true})
	}}
	for name, other := range map[string]*fake{"in-band": inBand, "trailer": trailer} {
		c := fakeClient(t, other.start(t))
		if id, err := c.Enqueue(within(t), "q", nil, nil); err != nil || id == "" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}

func TestBufferIsBounded(t *testing.T) {
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		<-s.Context().Done()
		return nil
	}}
	c := fakeClient(t, f.start(t), WithBufferBytes(1000))
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if _, err := c.Enqueue(ctx, "q", nil, make([]byte, 600)); !errors.Is(err, ErrCancelled) {
				t.Error(err)
			}
		})
	}
	untilWaiting(t, c, 1)
	if c.buffer.TryAcquire(600) {
		t.Error("there is room for a second message")
	}
	cancel()
	calls.Wait()
}

func TestKeyThatEndedIsTriedOnceMore(t *testing.T) {
	var streams atomic.Int32
	f := &fake{enqueue: func(filav1.FilaService_EnqueueStreamServer) error {
		streams.Add(1)
		return refusal(codes.Unauthenticated, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_KEY_ENDED})
	}}
	c := fakeClient(t, f.start(t), WithAPIKey("fila_x"))
	if _, err := c.Enqueue(within(t), "q", nil, nil); !errors.Is(err, ErrUnauthenticated) {
		t.Error(err)
	}
	if got := streams.Load(); got != 2 {
		t.Errorf("%d attempts", got)
	}
}

// delivering sends messages once, and passes reports of what was handed to seen until the client says goodbye.
func delivering(seen chan<- uint64, messages ...*filav1.Message) func(filav1.FilaService_ConsumeServer) error {
	return func(s filav1.FilaService_ConsumeServer) error {
		defer close(seen)
		if _, err := s.Recv(); err != nil {
			return nil
		}
		if err := s.SendHeader(metadata.Pairs(visibilityHeader, "30000")); err != nil {
			return err
		}
		if err := s.Send(&filav1.ConsumeResponse{Messages: messages}); err != nil {
			return err
		}
		for {
			request, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			seen <- request.GetHanded()
		}
	}
}

func delivery(id string, isolation filav1.Isolation) *filav1.Message {
	return &filav1.Message{Id: id, Metadata: &filav1.MessageMetadata{LeaseId: "lease", Isolation: isolation}}
}

func TestOnlyWhatTheProgramHasIsReported(t *testing.T) {
	seen := make(chan uint64, 100)
	f := &fake{consume: delivering(seen, delivery("1", 0), delivery("2", 0), delivery("3", 0))}
	c := fakeClient(t, f.start(t))
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := consumer.Next(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := consumer.Stop(within(t)); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for handed := range seen {
		last = handed
	}
	if last != 2 {
		t.Errorf("reported %d of 2", last)
	}
	if _, err := consumer.Next(within(t)); !errors.Is(err, ErrClosed) || consumer.Err() != nil {
		t.Error(err, consumer.Err())
	}
}

func TestCreditIsNotChangedAfterTheGoodbye(t *testing.T) {
	goodbyes, after := make(chan struct{}), make(chan error, 1)
	f := &fake{consume: func(s filav1.FilaService_ConsumeServer) error {
		_ = s.SendHeader(metadata.Pairs(visibilityHeader, "30000"))
		for {
			if _, err := s.Recv(); err != nil {
				break
			}
		}
		goodbyes <- struct{}{}
		select {
		case <-s.Context().Done():
			after <- s.Context().Err()
		case <-time.After(100 * time.Millisecond):
			after <- nil
		}
		return nil
	}}
	c := fakeClient(t, f.start(t))
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	<-consumer.opened
	stopped := begun(func() { _ = consumer.Stop(within(t)) })
	<-goodbyes
	for credit := range 3 {
		if err := consumer.SetMaxInFlight(credit); err != nil {
			t.Error(err)
		}
	}
	if err := <-after; err != nil {
		t.Errorf("the stream is cut before the broker has taken back what was prefetched: %v", err)
	}
	ends(t, "the consumer", stopped)
}

func TestMessageThatMayKillIsReportedBeforeTheProgramHasIt(t *testing.T) {
	seen := make(chan uint64, 100)
	released := make(chan *filav1.SettleRequest, 1)
	f := &fake{
		consume: delivering(seen, delivery("1", filav1.Isolation_ISOLATION_SUSPECT)),
		settle: func(s filav1.FilaService_SettleServer) error {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			released <- request
			_ = s.Send(&filav1.SettleResponse{Sequence: request.GetSequence()})
			<-s.Context().Done()
			return nil
		},
	}
	c := fakeClient(t, f.start(t))
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	if handed := <-seen; handed != 1 {
		t.Errorf("reported %d", handed)
	}
	if err := consumer.Stop(within(t)); err != nil {
		t.Fatal(err)
	}
	if request := <-released; len(request.GetNacks()) != 1 || !request.GetNacks()[0].GetRelease() {
		t.Errorf("a message that nobody took is given back, not %v", request)
	}
}

func TestConsumerIsRefusedByKind(t *testing.T) {
	f := &fake{consume: func(filav1.FilaService_ConsumeServer) error {
		return refusal(codes.NotFound, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_QUEUE_NOT_FOUND})
	}}
	c := fakeClient(t, f.start(t))
	if _, err := c.Consume(within(t), "q"); !errors.Is(err, ErrQueueNotFound) {
		t.Error(err)
	}
	for _, err := range c.Messages(within(t), "q") {
		if !errors.Is(err, ErrQueueNotFound) {
			t.Error(err)
		}
	}
}

func TestSettleIsRepeatedWhenItsRefusalPasses(t *testing.T) {
	var tries atomic.Int32
	f := &fake{settle: func(s filav1.FilaService_SettleServer) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			response := &filav1.SettleResponse{Sequence: request.GetSequence()}
			switch tries.Add(1) {
			case 1:
				response.Error = &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_OVERLOADED, Retryable: true}
			case 2:
				response.Failures = []*filav1.SettleFailure{{Queue: "q", MessageId: "1", Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_STORE_FULL, Retryable: true}}}
			}
			if err := s.Send(response); err != nil {
				return err
			}
		}
	}}
	c := fakeClient(t, f.start(t))
	if err := c.Ack(within(t), "q", "1"); err != nil || tries.Load() != 3 {
		t.Error(err, tries.Load())
	}
	if err := c.Nack(within(t), "q", "1", "\xff"); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
}

func TestLostAckThatIsRefusedMeanwhileIsStillOneThatWasSentBefore(t *testing.T) {
	var requests atomic.Int32
	f := &fake{settle: func(s filav1.FilaService_SettleServer) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			response := &filav1.SettleResponse{Sequence: request.GetSequence()}
			switch requests.Add(1) {
			case 1:
				return status.Error(codes.Unavailable, "lost")
			case 2:
				response.Error = &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_OVERLOADED, Retryable: true}
			default:
				response.Failures = []*filav1.SettleFailure{{Queue: "q", MessageId: "1", Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_MESSAGE_GONE}}}
			}
			if err := s.Send(response); err != nil {
				return err
			}
		}
	}}
	c := fakeClient(t, f.start(t))
	if err := c.Ack(within(t), "q", "1"); err != nil || requests.Load() != 3 {
		t.Errorf("it was carried out the first time: %v after %d requests", err, requests.Load())
	}
}
