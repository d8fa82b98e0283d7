// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"time"

	"google.golang.org/grpc/mem"
)

const (
	// windowBatches are in flight at most. The broker remembers its last 64 answers to a producer.
	windowBatches = 8
	// While the last batch in flight is smaller than smallBytes, only smallWindow are in flight: what arrives meanwhile
	// travels as one batch. Otherwise a stall fills the window with single messages, each of which waits for all others.
	smallBytes  = 64 << 10
	smallWindow = 2
	// From manyItems on that wait, a small batch is alone in flight. Otherwise each of two has half of the callers for ever.
	manyItems = 8
)

// batch is one request on a stream, for several callers.
type batch[T any] struct {
	data     mem.BufferSlice // in pieces, so that those that are there already are not copied
	sequence uint64
	items    []T
	sentAt   time.Time // for the first time
	// resent: it was sent on a stream that was lost, so the broker may have carried it out.
	resent bool
}

// window decides which batch goes onto the wire next. It knows no stream and no clock.
//
//   - Batches leave in the order in which they were made, and are answered in that order.
//   - After a lost stream they go first onto the next one, the same bytes in the same order.
//   - One that may have been carried out is sent again alone. If the broker has no time for it, it has to come once more
//     under its number, and that must happen before a higher number gets through.
//   - A batch that nobody waits for any more is not sent again; its number is never used again.
//   - When the broker ends the stream with a refusal, the batch to blame is known only if it was alone. So they are
//     sent one at a time from then on, until one is refused alone.
type window[T any] struct {
	inFlight []*batch[T]
	resend   []*batch[T]
	probing  bool
	waits    func(T) bool
	dropped  func(*batch[T])
}

func (w *window[T]) empty() bool { return len(w.inFlight)+len(w.resend) == 0 }

// next is the batch to write now, nil when there is none or no room. Of gathered items, create makes a new one.
func (w *window[T]) next(gathered int, create func() *batch[T]) *batch[T] {
	if w.empty() {
		w.probing = false
	}
	if len(w.inFlight) >= w.room(gathered) {
		return nil
	}
	made := w.leftOver()
	if made == nil {
		made = create()
	}
	if made != nil {
		w.inFlight = append(w.inFlight, made)
	}
	return made
}

func (w *window[T]) room(gathered int) int {
	count := len(w.inFlight)
	again := len(w.resend) > 0 || count > 0 && w.inFlight[count-1].resent
	switch small := count > 0 && w.inFlight[count-1].data.Len() < smallBytes; {
	case w.probing, again, small && w.items()+gathered >= manyItems:
		return 1
	case small:
		return smallWindow
	default:
		return windowBatches
	}
}

// items is how many are in flight.
func (w *window[T]) items() int {
	count := 0
	for _, each := range w.inFlight {
		count += len(each.items)
	}
	return count
}

func (w *window[T]) leftOver() *batch[T] {
	for len(w.resend) > 0 {
		first := w.resend[0]
		w.resend = w.resend[1:]
		for _, item := range first.items {
			if w.waits(item) {
				return first
			}
		}
		w.dropped(first)
	}
	return nil
}

// answered takes the batch that the next answer belongs to.
func (w *window[T]) answered() *batch[T] {
	if len(w.inFlight) == 0 {
		return nil
	}
	first := w.inFlight[0]
	w.inFlight[0] = nil // so that the array does not hold it
	w.inFlight = w.inFlight[1:]
	return first
}

// again puts an answered batch back: it is to be sent again under its number.
func (w *window[T]) again(first *batch[T]) { w.inFlight = append([]*batch[T]{first}, w.inFlight...) }

// lost: what was in flight is to be sent again.
func (w *window[T]) lost() {
	for _, each := range w.inFlight {
		each.resent = true
	}
	w.resend = append(w.inFlight, w.resend...)
	w.inFlight = nil
}

// refused: the broker ended the stream. It returns the batch to blame, if that is certain.
func (w *window[T]) refused() *batch[T] {
	var blamed *batch[T]
	if len(w.inFlight) == 1 {
		blamed, w.inFlight = w.inFlight[0], nil
	}
	w.probing = w.probing || len(w.inFlight) > 0
	w.lost()
	return blamed
}

// clear takes all batches.
func (w *window[T]) clear() []*batch[T] {
	all := append(w.inFlight, w.resend...)
	w.inFlight, w.resend = nil, nil
	return all
}
