// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// codec turns what callers want into batches, and an answer into one for each caller. Its methods run under the lock of
// the pipe.
type codec[T any] interface {
	// makeBatch takes from the front of gathered what fits into one batch.
	makeBatch(gathered []T) (made *batch[T], rest []T)
	// Its error is an [Error] when nothing was done now, but may have been when the batch was sent before: it keeps its
	// number and is sent again. Any other error says that the answer does not fit.
	answer(of *batch[T], response []byte) error
}

// item is what one caller waits for.
type item interface {
	waiting() bool
	abandon() bool
	wasSent() bool
	finished() <-chan struct{}
	fail(err *Error)
	release()
}

// pipes are the streams of one kind, by the member that they are for; "" is the one in use.
type pipes[T item] struct {
	open map[string]*pipe[T]
	made int
}

// to returns the pipe to a member. There are at most as many as members, and that to the member in use; those that have
// nothing to do make room.
func (s *pipes[T]) to(address string, create func(number int, address string) *pipe[T]) *pipe[T] {
	if len(s.open) >= maxMembers && s.open[address] == nil {
		s.closeIdle()
		if len(s.open) >= maxMembers {
			address = ""
		}
	}
	found := s.open[address]
	if found == nil {
		found = create(s.made, address)
		s.open[address] = found
		s.made++
	}
	return found
}

func (s *pipes[T]) closeIdle() {
	for address, each := range s.open {
		if address != "" && !each.busy() {
			each.close()
			delete(s.open, address)
		}
	}
}

func (s *pipes[T]) close() {
	for _, each := range s.open {
		each.close()
	}
}

// pipe is a stream of batches to one member: many in flight, answered in order, sent again after a lost stream.
type pipe[T item] struct {
	client *Client
	method string
	codec  codec[T]
	// known is how long the broker knows a batch, so that it may be sent again; 0 means for ever.
	known time.Duration

	mu       sync.Mutex
	pin      string // the member to use; empty means the one in use
	hops     int    // how often in a row a member has named another one
	gathered []T
	forsaken int // how many items were abandoned since the last sweep
	window   window[T]
	trouble  *Error
	company  company
	here     atomic.Int64 // how many are gathered, for who waits for more
	running  bool
	closed   bool
	wake     chan struct{}
	stop     context.CancelFunc
	ctx      context.Context
	done     sync.WaitGroup
}

func newPipe[T item](c *Client, method, pin string, codec codec[T]) *pipe[T] {
	p := &pipe[T]{client: c, method: method, codec: codec, pin: pin, wake: make(chan struct{}, 1)}
	p.window.waits = func(each T) bool { return each.waiting() }
	p.window.dropped = func(each *batch[T]) {
		for _, item := range each.items {
			item.release()
		}
	}
	p.ctx, p.stop = context.WithCancel(context.Background()) //nolint:gosec // close calls it
	return p
}

// submit adds items, which are answered, failed or abandoned later. It returns false when the pipe is closed.
func (p *pipe[T]) submit(items ...T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.leave(append(p.gathered, items...))
	if !p.running {
		p.running = true
		p.done.Go(p.run)
	}
	p.signal()
	return true
}

// await waits for the answer to an item, or for the end of the context.
func (p *pipe[T]) await(ctx context.Context, one T) {
	select {
	case <-one.finished():
	case <-ctx.Done():
		if one.abandon() {
			one.fail(p.client.ended(ctx, p.troubled(), one.wasSent()))
			p.forsake()
		}
		<-one.finished()
	}
}

// forsake counts an item that nobody waits for any more. When they may be the most of all, they are dropped, so that they
// hold no memory while the broker is away or silent.
func (p *pipe[T]) forsake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forsaken++; 2*p.forsaken >= len(p.gathered) {
		p.sweep()
	}
}

func (p *pipe[T]) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// leave has what is gathered from now on.
func (p *pipe[T]) leave(gathered []T) {
	p.gathered = gathered
	p.here.Store(int64(len(gathered)))
}

// sweep drops items that nobody waits for.
func (p *pipe[T]) sweep() {
	p.forsaken = 0
	kept := p.gathered[:0]
	for _, each := range p.gathered {
		if each.waiting() {
			kept = append(kept, each)
		} else {
			each.release()
		}
	}
	clear(p.gathered[len(kept):])
	p.leave(kept)
}

func (p *pipe[T]) close() {
	p.mu.Lock()
	p.closed = true
	p.failAll(closedError())
	p.mu.Unlock()
	p.stop()
	p.done.Wait()
}

func (p *pipe[T]) failAll(err *Error) {
	items := p.gathered
	p.leave(nil)
	for _, each := range p.window.clear() {
		items = append(items, each.items...)
	}
	for _, each := range items {
		each.fail(err)
		each.release()
	}
}

// troubled is the last failure of the connection, nil while it works.
func (p *pipe[T]) troubled() *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trouble
}

func (p *pipe[T]) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.gathered) > 0 || !p.window.empty()
}

func (p *pipe[T]) run() {
	var waits backoff
	keys := 0
	for {
		for !p.busy() {
			select {
			case <-p.wake:
			case <-p.ctx.Done():
				return
			}
		}
		answered, failed, lost := p.serve()
		if p.ctx.Err() != nil {
			return
		}
		if answered {
			waits.reset()
			keys = 0
		}
		if failed.Kind == kindKeyEnded {
			keys++
		}
		p.afterLoss(failed, lost && keys < 2)
		if p.busy() {
			p.client.pause(p.ctx, waits.after(failed.RetryAfter))
		}
	}
}

// afterLoss decides what becomes of the batches in flight.
func (p *pipe[T]) afterLoss(failed *Error, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = failed
	switch {
	case lost:
		p.window.lost()
	case failed.code == codeUnauthenticated || failed.Kind == KindUnavailable:
		p.failAll(failed) // no later batch could succeed either
	default:
		if blamed := p.window.refused(); blamed != nil {
			for _, each := range blamed.items {
				each.fail(failed)
				each.release()
			}
		}
	}
}

// serve uses one stream, from opening it to its end. lost: the batches in flight may be sent again.
func (p *pipe[T]) serve() (answered bool, failed *Error, lost bool) {
	p.mu.Lock()
	pin := p.pin
	p.mu.Unlock()
	at, failed := p.client.members.at(pin)
	if failed != nil {
		return false, failed, false
	}
	if failed = at.ready(p.ctx); failed != nil {
		p.left(at)
		return false, failed, failed.Retryable
	}
	p.failOld()
	ctx, cancel := context.WithCancel(p.ctx)
	stream, err := at.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, p.method, grpc.ForceCodecV2(rawCodec{}))
	ended := make(chan error, 1)
	if err == nil {
		p.done.Go(func() { ended <- p.read(stream, &answered) })
		err = p.write(stream, ended)
	}
	cancel()
	if errors.Is(err, io.EOF) { // the broker ended the stream in good order, as one that stops
		return answered, unavailable("the broker closed the stream", err), true
	}
	failed, lost = asError(err)
	if owner := ownerOf(failed, trailerOf(stream, err)); owner != "" {
		p.follow(owner, answered)
	} else if lost && failed.code == codes.Unavailable && failed.Kind != kindKeyEnded && failed.Kind != kindStoreBusy {
		p.left(at)
	}
	return answered, failed, lost
}

// failOld ends the wait for batches that the broker may not know any more: sent again, they could be carried out twice.
func (p *pipe[T]) failOld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == 0 {
		return
	}
	for _, each := range p.window.resend {
		if time.Since(each.sentAt) > p.known {
			for _, item := range each.items {
				item.fail(&Error{Kind: kindStale, Message: "its answer was lost, and the broker may not know it any more", code: codes.FailedPrecondition})
			}
		}
	}
}

// follow goes to the member that another one named, a few times in a row.
func (p *pipe[T]) follow(owner string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hops++; answered {
		p.hops = 1
	}
	if p.pin = owner; p.hops > maxHops {
		p.pin, p.hops = "", 0
	}
}

// left goes on to another member. Numbers of batches stay: they are unique to this pipe.
func (p *pipe[T]) left(at *member) {
	if p.ctx.Err() != nil {
		return // it is we who leave
	}
	p.client.members.leave(at.address)
	p.mu.Lock()
	p.pin = ""
	p.mu.Unlock()
}

// write sends batches until the stream has ended, and returns why.
func (p *pipe[T]) write(stream grpc.ClientStream, ended <-chan error) error {
	for {
		p.gather()
		p.mu.Lock()
		next := p.window.next(len(p.gathered), p.makeBatch)
		if next != nil && next.sentAt.IsZero() {
			next.sentAt = time.Now()
		}
		p.mu.Unlock()
		if next == nil {
			select {
			case <-p.wake:
			case err := <-ended:
				return err
			}
			continue
		}
		if stream.SendMsg(next.data) != nil {
			return <-ended // the reader knows why
		}
	}
}

// gather waits for callers that were just answered, when nothing is in flight and some of them are back.
func (p *pipe[T]) gather() {
	p.mu.Lock()
	who, alone := p.company, p.window.empty() && len(p.gathered) > 0
	p.mu.Unlock()
	if !alone {
		return
	}
	for who.awaits(int(p.here.Load()), time.Now()) {
		runtime.Gosched()
	}
	p.mu.Lock()
	p.company.size = who.size
	p.mu.Unlock()
}

func (p *pipe[T]) makeBatch() *batch[T] {
	made, rest := p.codec.makeBatch(p.gathered)
	p.leave(rest)
	return made
}

func (p *pipe[T]) read(stream grpc.ClientStream, answered *bool) error {
	for {
		var response []byte
		if err := stream.RecvMsg(&response); err != nil {
			return err
		}
		p.mu.Lock()
		first := p.window.answered()
		if first == nil {
			p.mu.Unlock()
			return unavailable("the broker sent an answer that nobody waits for", nil)
		}
		err := p.codec.answer(first, response)
		if errors.As(err, new(*Error)) {
			p.window.again(first)
			p.mu.Unlock()
			return err
		}
		for _, each := range first.items {
			if err != nil {
				each.fail(&Error{Kind: kindInternal, Message: "unexpected answer of the broker: " + err.Error(), cause: err})
			}
			each.release()
		}
		p.trouble = nil
		p.company.free(len(first.items)+p.window.items()+len(p.gathered), time.Now())
		ready := len(p.gathered)+len(p.window.resend) > 0
		p.mu.Unlock()
		if err != nil { // of this batch alone: the others are sent again
			return unavailable("unexpected answer of the broker: "+err.Error(), err)
		}
		*answered = true
		if ready {
			p.signal()
		}
	}
}
