// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"testing"
)

func delivered(ids ...string) []*ConsumeMessage {
	var all []*ConsumeMessage
	for _, id := range ids {
		all = append(all, &ConsumeMessage{ID: id})
	}
	return all
}

func TestShelfGivesMessagesInOrderAndCountsThem(t *testing.T) {
	s := newShelf()
	s.put(delivered("a", "b"))
	s.put(delivered("c"))
	for _, want := range []string{"a", "b"} {
		if got, _ := s.take(); got == nil || got.ID != want {
			t.Fatalf("took %v, want %s", got, want)
		}
	}
	select {
	case <-s.touched:
	default:
		t.Error("the session is not told that there is something to report")
	}
	if s.report() != 2 {
		t.Error("two were handed")
	}
	if kept := s.clear(); len(kept) != 1 || kept[0].ID != "c" {
		t.Errorf("%v were not handed", kept)
	}
	if s.begin(); s.report() != 0 {
		t.Error("a new stream counts anew")
	}
}

func TestWhoAsksFirstIsServedFirst(t *testing.T) {
	s := newShelf()
	_, first := s.take()
	_, gone := s.take()
	_, second := s.take()
	if s.leave(gone) != nil {
		t.Error("there was nothing to give")
	}
	s.put(delivered("a", "b"))
	if (<-first).ID != "a" || (<-second).ID != "b" || s.report() != 2 {
		t.Error("not in the order in which they asked")
	}
}

func TestMessageThatWasGivenToWhoLeavesIsItsOwn(t *testing.T) {
	s := newShelf()
	_, asker := s.take()
	s.put(delivered("a"))
	if got := s.leave(asker); got == nil || got.ID != "a" {
		t.Errorf("left with %v: the message is lost", got)
	}
}

func TestIsolatedMessageIsHandedWhenTheBrokerKnows(t *testing.T) {
	s := newShelf()
	_, asker := s.take()
	s.put([]*ConsumeMessage{{ID: "before"}, {ID: "alone", Isolated: true}})
	if (<-asker).ID != "before" {
		t.Fatal("the one before it is not isolated")
	}
	got, waiting := s.take()
	if got != nil {
		t.Fatal("handed before the broker knows")
	}
	<-s.touched // the session comes to tell the broker
	if alone, handed := s.isolated(); alone == nil || handed != 1 {
		t.Fatal(alone, handed)
	}
	s.confirm()
	if (<-waiting).ID != "alone" {
		t.Error("the broker knows now")
	}
	if alone, _ := s.isolated(); alone != nil {
		t.Error("told once")
	}
}

func TestAllWhoAskAreToldOfTheEnd(t *testing.T) {
	s := newShelf()
	_, before := s.take()
	s.end()
	_, after := s.take()
	for _, asker := range []chan *ConsumeMessage{before, after} {
		if message, ok := <-asker; ok {
			t.Errorf("given %v after the end", message)
		}
		if s.leave(asker) != nil {
			t.Error("there was nothing to give")
		}
	}
}

func TestWithTheChannelInUseAllMessagesGoThroughIt(t *testing.T) {
	s := newShelf()
	_, asker := s.take()
	s.put(delivered("a", "b"))
	if s.offer() != nil {
		t.Error("nobody has the channel")
	}
	s.useChannel()
	if (<-asker).ID != "a" {
		t.Error("who has asked before is served")
	}
	if message, asker := s.take(); message != nil || asker != nil {
		t.Error("Next competes with the channel for a message that is offered there")
	}
	if s.offer().ID != "b" {
		t.Fatal("b is next")
	}
	if s.taken(); s.offer() != nil || s.report() != 2 {
		t.Error("b was taken")
	}
}

func TestNextGivesNothingOnceItsContextIsOver(t *testing.T) {
	c := fakeClient(t, "127.0.0.1:1")
	k, err := c.Subscribe("q")
	if err != nil {
		t.Fatal(err)
	}
	k.shelf.put(delivered("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if message, err := k.Next(ctx); message != nil || !errors.Is(err, ErrCancelled) {
		t.Errorf("%v, %v", message, err)
	}
	if message, err := k.Next(within(t)); err != nil || message.ID != "a" {
		t.Errorf("%v, %v", message, err)
	}
}
