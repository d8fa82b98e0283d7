// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import "sync"

// shelf has the prefetched messages of a consumer, in the order of delivery, and counts those that the program was
// handed. Callers of Next take messages by themselves: a switch to the goroutine of the session and back, for each
// message, would cost more than all the rest.
//
//   - Who finds nothing asks. What arrives goes to those who ask, first come, first served.
//   - A message that is delivered alone is handed when the broker was told so, and not before.
//   - From when the program has the channel of the consumer, messages go through it alone: the session offers the first one.
type shelf struct {
	mu       sync.Mutex
	messages []*ConsumeMessage
	askers   []chan *ConsumeMessage
	handed   uint64 // of the present stream
	told     bool   // the session knows that there is something to report
	channel  bool
	ended    bool
	touched  chan struct{} // tells the session that there is something to report, or to offer
}

func newShelf() *shelf { return &shelf{touched: make(chan struct{}, 1)} }

// take returns the next message, or a channel for it, which is closed when the consumer ends. Both are nil when messages
// go through the channel of the consumer.
func (s *shelf) take() (*ConsumeMessage, chan *ConsumeMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.channel:
		return nil, nil
	case s.ready():
		return s.pop(), nil
	}
	asker := make(chan *ConsumeMessage, 1)
	if s.ended {
		close(asker)
	} else {
		s.askers = append(s.askers, asker)
	}
	return nil, asker
}

// leave ends the wait of a caller. A message that it was given meanwhile is its own.
func (s *shelf) leave(asker chan *ConsumeMessage) *ConsumeMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, each := range s.askers {
		if each == asker {
			s.askers = append(s.askers[:at], s.askers[at+1:]...)
			return nil
		}
	}
	return <-asker // it was given one, or the consumer has ended
}

// put adds messages that have arrived.
func (s *shelf) put(messages []*ConsumeMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		s.messages = messages
	} else {
		s.messages = append(s.messages, messages...)
	}
	s.serve()
}

// isolated is the first message if the broker must be told of it before it is handed out, and how many were handed.
func (s *shelf) isolated() (*ConsumeMessage, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 || s.ready() {
		return nil, 0
	}
	return s.messages[0], s.handed
}

// confirm: the broker was told of the first message.
func (s *shelf) confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[0].reported = true
	s.serve()
}

// offer is the message for the channel of the consumer, if the program has it.
func (s *shelf) offer() *ConsumeMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.channel || !s.ready() {
		return nil
	}
	return s.messages[0]
}

// taken: the program has received the message that was offered.
func (s *shelf) taken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pop()
}

func (s *shelf) useChannel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel = true
	s.touch()
}

func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages)
}

// report is how many messages were handed. The next one is told of again.
func (s *shelf) report() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = false
	return s.handed
}

// clear takes all messages back.
func (s *shelf) clear() []*ConsumeMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.messages
	s.messages = nil
	return kept
}

// begin is for a new stream, of which nothing was handed.
func (s *shelf) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed, s.told = 0, false
}

// end tells all who ask that nothing more comes.
func (s *shelf) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, each := range s.askers {
		close(each)
	}
	s.askers = nil
}

// ready: the first message may be handed out.
func (s *shelf) ready() bool {
	return len(s.messages) > 0 && (!s.messages[0].Isolated || s.messages[0].reported)
}

func (s *shelf) serve() {
	for len(s.askers) > 0 && s.ready() {
		s.askers[0] <- s.pop()
		s.askers = s.askers[1:]
	}
}

func (s *shelf) pop() *ConsumeMessage {
	first := s.messages[0]
	s.messages[0] = nil // so that the array does not hold it
	s.messages = s.messages[1:]
	s.handed++
	if !s.told || (len(s.messages) > 0 && !s.ready()) {
		s.told = true
		s.touch()
	}
	return first
}

func (s *shelf) touch() {
	select {
	case s.touched <- struct{}{}:
	default:
	}
}
