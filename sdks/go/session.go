// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fila-dev/fila-go/filav1"
)

const (
	// visibilityHeader says how long a lease lasts.
	visibilityHeader = "fila-visibility-timeout-ms"
	// reportEvery is how soon the broker learns what the program was handed.
	reportEvery = 5 * time.Millisecond
)

type consumeStream = grpc.BidiStreamingClient[filav1.ConsumeRequest, filav1.ConsumeResponse]

// session is one Consume stream of a consumer. All its state belongs to one goroutine; a second one reads the stream.
type session struct {
	consumer  *Consumer
	stream    consumeStream
	reported  uint64
	lastSent  time.Time
	due       *time.Timer // armed while a report waits
	most      uint32      // the highest credit of this stream
	leaving   bool        // we have said goodbye
	started   bool        // the broker has accepted the stream
	delivered bool
}

// arrival is what the reader of a stream has: the start of the stream, messages, or its end.
type arrival struct {
	started    bool
	visibility time.Duration
	messages   []*ConsumeMessage
	err        error
}

// serve uses the stream from its opening to its end. owner is the member that the broker has named instead of itself.
func (s *session) serve(at *member) (failed *Error, lost bool, owner string) {
	k := s.consumer
	ctx, cancel := context.WithCancel(k.stream)
	defer cancel()
	// A stop waits for the goodbye of the broker, but not for one that is silent or does not even read.
	defer context.AfterFunc(k.waiting, func() {
		k.client.pause(ctx, goodbye)
		cancel()
	})()
	stream, err := filav1.NewFilaServiceClient(at.conn).Consume(ctx)
	if err == nil {
		s.stream, s.most = stream, k.credit
		// Its error, if any, is the one that the reader finds.
		_ = stream.Send(&filav1.ConsumeRequest{Queue: k.queue, MaxInFlight: proto.Uint32(k.credit)})
		arrivals, done := make(chan arrival), make(chan struct{})
		go func() {
			defer close(done)
			s.read(ctx, stream, arrivals)
		}()
		err = s.loop(ctx, arrivals)
		cancel()
		<-done
	}
	if errors.Is(err, io.EOF) { // in good order, as a server does that stops
		return unavailable("the broker closed the stream", err), true, ""
	}
	failed, lost = asError(err)
	if stream != nil {
		owner = ownerOf(failed, stream.Trailer())
	}
	return failed, lost, owner
}

func (s *session) read(ctx context.Context, stream consumeStream, arrivals chan<- arrival) {
	k := s.consumer
	pass := func(one arrival) bool {
		select {
		case arrivals <- one:
			return one.err == nil
		case <-ctx.Done():
			return false
		}
	}
	if header, err := stream.Header(); err == nil && header != nil {
		if !pass(arrival{started: true, visibility: visibilityOf(header.Get(visibilityHeader))}) {
			return
		}
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			pass(arrival{err: err})
			return
		}
		one := arrival{visibility: time.Duration(response.GetVisibilityTimeoutMs()) * time.Millisecond}
		one.messages = make([]*ConsumeMessage, 0, len(response.GetMessages()))
		for _, each := range response.GetMessages() {
			one.messages = append(one.messages, newConsumeMessage(k.client, k.holding, k.queue, each))
		}
		if !pass(one) {
			return
		}
	}
}

// loop hands messages out, reports that, and returns why the stream has ended.
func (s *session) loop(ctx context.Context, arrivals <-chan arrival) error {
	k := s.consumer
	s.due = time.NewTimer(time.Hour)
	s.due.Stop()
	defer s.due.Stop()
	stop, credits := k.waiting.Done(), k.credits
	k.shelf.begin()
	for {
		first, out := s.next()
		select {
		case out <- first:
			k.shelf.taken()
		case <-k.shelf.touched:
			s.reportSoon()
		case one := <-s.inbox(arrivals):
			if one.err != nil {
				return one.err
			}
			s.arrived(one)
		case <-s.due.C:
			s.report()
		case credit := <-credits:
			k.credit, s.most = credit, max(s.most, credit)
			_ = s.stream.Send(&filav1.ConsumeRequest{MaxInFlight: proto.Uint32(credit)})
		case <-stop:
			stop, credits = nil, nil // nothing is sent after the goodbye
			s.goodbye()
		case <-ctx.Done():
			return io.EOF
		}
	}
}

// inbox is where more messages come from. A broker that delivers more than it was given credit for is not read, so that
// it cannot fill the memory of the program.
func (s *session) inbox(arrivals <-chan arrival) <-chan arrival {
	if s.consumer.shelf.count() > int(s.most) {
		return nil
	}
	return arrivals
}

// next is the message to offer, if any. One that is delivered alone, because it may have killed its consumers, is
// reported first: if this process dies of it, the broker knows.
func (s *session) next() (*ConsumeMessage, chan<- *ConsumeMessage) {
	k := s.consumer
	if alone, handed := k.shelf.isolated(); alone != nil {
		s.send(handed + 1)
		k.shelf.confirm()
	}
	if first := k.shelf.offer(); first != nil {
		return first, k.out
	}
	return nil, nil
}

func (s *session) arrived(one arrival) {
	k := s.consumer
	k.holding.lasts(one.visibility)
	if one.started {
		s.started = true
		k.open()
	}
	if len(one.messages) == 0 {
		return
	}
	s.delivered = true
	if s.leaving { // sent before the broker saw the end: they go back
		return
	}
	k.holding.add(one.messages)
	k.shelf.put(one.messages)
}

// reportSoon reports what was handed, unless a report was sent just before.
func (s *session) reportSoon() {
	if wait := reportEvery - time.Since(s.lastSent); wait > 0 {
		s.due.Reset(wait)
	} else {
		s.report()
	}
}

func (s *session) report() {
	if handed := s.consumer.shelf.report(); handed > s.reported {
		s.send(handed)
	}
}

// send reports how many messages the program was handed. An error is the one that the reader finds.
func (s *session) send(handed uint64) {
	s.reported, s.lastSent = handed, time.Now()
	_ = s.stream.Send(&filav1.ConsumeRequest{Handed: handed})
}

// goodbye ends the delivery: the broker takes back what was never handed, and counts no attempt. From when it is told what
// was handed, nothing is.
func (s *session) goodbye() {
	s.leaving = true
	kept := s.consumer.shelf.clear()
	s.report()
	_ = s.stream.CloseSend()
	s.consumer.holding.forgetAll(kept)
	if len(kept) > 0 && kept[0].reported { // the broker believes that the program has it
		s.consumer.release(kept[:1])
	}
}
