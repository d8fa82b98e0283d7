// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fila-dev/fila-go/filav1"
	"github.com/fila-dev/fila-go/internal/filatest"
)

// What is tried again, and what is not.

func TestHandshakeThatIsCutIsTriedAgain(t *testing.T) {
	authority := filatest.NewAuthority(t)
	secure, err := credentials.NewServerTLSFromFile(authority.Pair(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{describe: func(context.Context) (*filav1.DescribeResponse, error) { return &filav1.DescribeResponse{}, nil }}
	address := f.serve(t, &cutting{Listener: listen(t), cuts: 2}, grpc.Creds(secure))
	c := fakeClient(t, address, WithTLSFiles(TLSFiles{CA: authority.CA, ServerName: "localhost"}))
	if _, err := c.Describe(within(t)); err != nil {
		t.Error(err)
	}
}

func TestCertificateThatIsHalfRenewedIsNotShown(t *testing.T) {
	cert, key := filatest.NewAuthority(t).Pair(t, "client")
	var s settings
	if err := WithTLSFiles(TLSFiles{Cert: cert, Key: key})(&s); err != nil {
		t.Fatal(err)
	}
	before, err := s.tls.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	newCert, newKey := filatest.NewAuthority(t).Pair(t, "client")
	replace := func(old, with string) {
		if err := os.Rename(with, old); err != nil {
			t.Fatal(err)
		}
	}
	replace(cert, newCert)
	if got, err := s.tls.GetClientCertificate(nil); err != nil || !got.Leaf.Equal(before.Leaf) {
		t.Errorf("while only one file is new: %v", err)
	}
	replace(key, newKey)
	if got, err := s.tls.GetClientCertificate(nil); err != nil || got.Leaf.Equal(before.Leaf) {
		t.Errorf("when both are new: %v", err)
	}
}

func TestConsumerSurvivesEveryKeyThatEnds(t *testing.T) {
	var streams atomic.Int32
	f := &fake{consume: func(s filav1.FilaService_ConsumeServer) error {
		_ = s.SendHeader(metadata.Pairs(visibilityHeader, "30000"))
		if streams.Add(1) < 4 { // nothing was delivered while the key was valid
			return refusal(codes.Unauthenticated, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_KEY_ENDED})
		}
		_ = s.Send(&filav1.ConsumeResponse{Messages: []*filav1.Message{delivery("1", 0)}})
		<-s.Context().Done()
		return nil
	}}
	c := fakeClient(t, f.start(t), WithAPIKey("fila_x"))
	consumer, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := consumer.Next(within(t)); err != nil {
		t.Error(err)
	}
}

func TestConsumerEndsWhenItsKeyIsRefusedTwice(t *testing.T) {
	var streams atomic.Int32
	f := &fake{consume: func(filav1.FilaService_ConsumeServer) error {
		streams.Add(1)
		return refusal(codes.Unauthenticated, &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_KEY_ENDED})
	}}
	c := fakeClient(t, f.start(t), WithAPIKey("fila_x"))
	if _, err := c.Consume(within(t), "q"); !errors.Is(err, ErrUnauthenticated) || streams.Load() != 2 {
		t.Error(err, streams.Load())
	}
}

func TestAddressThatIsListedTwiceIsLeft(t *testing.T) {
	f := &fake{describe: func(context.Context) (*filav1.DescribeResponse, error) { return &filav1.DescribeResponse{}, nil }}
	c := fakeClient(t, "127.0.0.1:1", WithAddresses("127.0.0.1:1", f.start(t)))
	if _, err := c.Describe(within(t)); err != nil {
		t.Error(err)
	}
}

func TestCallThatFoundNoServerSaysSo(t *testing.T) {
	silence := listen(t) // the system accepts connections, and nobody answers
	c := fakeClient(t, silence.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Describe(ctx); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestAnswerThatIsWrongFailsItsBatchAlone(t *testing.T) {
	var streams atomic.Int32
	seen := make(chan uint64)
	wrong := make(chan struct{})
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
		<-wrong
		_ = s.Send(&filav1.EnqueueBatchResponse{Sequence: 77})
		<-s.Context().Done()
		return nil
	}}
	c := fakeClient(t, f.start(t))
	first := begun(func() {
		if _, err := c.Enqueue(within(t), "q", nil, nil); !errors.Is(err, ErrInternal) {
			t.Errorf("the batch with a wrong answer: %v", err)
		}
	})
	<-seen
	second := begun(func() {
		if id, err := c.Enqueue(within(t), "q", nil, nil); err != nil || id != "2-0" {
			t.Errorf("the batch behind it: %q, %v", id, err)
		}
	})
	<-seen
	close(wrong)
	ends(t, "the first", first)
	ends(t, "the second", second)
}

func TestBatchThatTheBrokerMayHaveForgottenIsNotSentAgain(t *testing.T) {
	var streams atomic.Int32
	seen, end := make(chan struct{}), make(chan struct{})
	f := &fake{enqueue: func(s filav1.FilaService_EnqueueStreamServer) error {
		if streams.Add(1) > 1 {
			return taking(s, func(r *filav1.EnqueueBatchRequest) {
				if r.GetSequence() == 1 {
					t.Error("it was sent again")
				}
			})
		}
		_, _ = s.Recv()
		close(seen)
		<-end
		return status.Error(codes.Unavailable, "lost")
	}}
	c := fakeClient(t, f.start(t))
	first := begun(func() {
		if _, err := c.Enqueue(within(t), "q", nil, nil); !errors.Is(err, ErrFailedPrecondition) {
			t.Error(err)
		}
	})
	<-seen
	to, _ := c.enqueuePipe("")
	to.mu.Lock()
	to.window.inFlight[0].sentAt = time.Now().Add(-producerKnown)
	to.mu.Unlock()
	close(end)
	ends(t, "the call", first)
	if id, err := c.Enqueue(within(t), "q", nil, nil); err != nil || id != "2-0" {
		t.Error(id, err)
	}
}

func TestOwnerIsAskedAgainAfterAPause(t *testing.T) {
	var tries atomic.Int32
	var address string
	f := &fake{}
	f.enqueue = func(s filav1.FilaService_EnqueueStreamServer) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			result := &filav1.EnqueueResult{MessageId: "id"}
			if tries.Add(1) < 8 { // members that do not agree yet
				result = &filav1.EnqueueResult{Error: &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_NOT_OWNER, Retryable: true, Owner: address}}
			}
			if err := s.Send(&filav1.EnqueueBatchResponse{Sequence: request.GetSequence(), Results: []*filav1.EnqueueResult{result}}); err != nil {
				return err
			}
		}
	}
	f.settle = func(s filav1.FilaService_SettleServer) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return nil
			}
			response := &filav1.SettleResponse{Sequence: request.GetSequence()}
			if tries.Add(1) < 8 {
				response.Error = &filav1.Error{Kind: filav1.ErrorKind_ERROR_KIND_NOT_OWNER, Retryable: true, Owner: address}
			}
			if err := s.Send(response); err != nil {
				return err
			}
		}
	}
	listener := listen(t)
	address = listener.Addr().String()
	f.serve(t, listener)
	c := fakeClient(t, address)
	if id, err := c.Enqueue(within(t), "q", nil, nil); err != nil || id != "id" {
		t.Error(id, err)
	}
	tries.Store(0)
	if err := c.Ack(within(t), "q", "1"); err != nil || tries.Load() != 8 {
		t.Error(err, tries.Load())
	}
}

func TestPurgeOfACountIsNotRepeated(t *testing.T) {
	var asked atomic.Int32
	f := &fake{purge: func() (*filav1.PurgeResponse, error) {
		if asked.Add(1) == 1 {
			return nil, status.Error(codes.Unavailable, "the answer was lost")
		}
		return &filav1.PurgeResponse{Purged: 10}, nil
	}}
	c := fakeClient(t, f.start(t))
	if _, err := c.Purge(within(t), "q", SweepOptions{Count: 10}); !errors.Is(err, ErrUnavailable) || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
	asked.Store(0)
	if count, err := c.Purge(within(t), "q", SweepOptions{}); err != nil || count != 10 || asked.Load() != 2 {
		t.Errorf("all: asked %d times: %d, %v", asked.Load(), count, err)
	}
}

func TestMessageThatWasNotReceivedCannotBeSettled(t *testing.T) {
	var made ConsumeMessage
	for name, err := range map[string]error{
		"Ack": made.Ack(t.Context()), "Nack": made.Nack(t.Context(), ""), "Release": made.Release(t.Context()),
		"Reject": made.Reject(t.Context(), ""), "Extend": made.Extend(t.Context(), time.Second),
	} {
		if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if made.Context(t.Context()) != t.Context() {
		t.Error("it has no trace")
	}
}

func TestShortTimesAreNotNone(t *testing.T) {
	for of, want := range map[time.Duration]int64{0: 0, 1: 1, time.Microsecond: 1, time.Millisecond: 1, 1500 * time.Microsecond: 2, -time.Second: -1000} {
		if got := milliseconds(of); got != want {
			t.Errorf("%v is sent as %d ms, want %d", of, got, want)
		}
	}
}
