// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
)

const (
	// maxHops is how often in a row one call follows the members that others name.
	maxHops = 4
	// maxMembers bounds the connections: the addresses that were given, and those that members named.
	maxMembers = 64
	// maxRoutes bounds what is remembered of queues. Who is not remembered is asked for again.
	maxRoutes = 10_000
	// maxAddress is the length of a domain name, brackets and a port.
	maxAddress = 253 + 8
	// ownerTrailer has the address of the member that has what was asked for.
	ownerTrailer = "fila-owner"
)

// members knows the servers of a client, and which of them has which queue.
type members struct {
	settings *settings

	mu      sync.Mutex
	current int // index into settings.addresses
	open    map[string]*member
	routes  map[string]string // queue to address, as members named it
	closed  bool
}

func newMembers(s *settings) *members {
	return &members{settings: s, open: map[string]*member{}, routes: map[string]string{}}
}

// at returns the member at an address; an empty address means the one in use.
func (m *members) at(address string) (*member, *Error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, closedError()
	}
	if address == "" || !m.makeRoomFor(address) {
		address = m.settings.addresses[m.current]
	}
	if found := m.open[address]; found != nil {
		return found, nil
	}
	made, err := dialMember(address, m.settings)
	if err != nil {
		return nil, err
	}
	m.open[address] = made
	return made, nil
}

// makeRoomFor tells whether there is room for a member. Those that others named and that are not connected make room.
func (m *members) makeRoomFor(address string) bool {
	if m.open[address] != nil || len(m.open) < maxMembers {
		return true
	}
	for other, each := range m.open {
		if !slices.Contains(m.settings.addresses, other) && each.conn.GetState() != connectivity.Ready {
			_ = each.conn.Close() // its only error is that it is closed already
			delete(m.open, other)
		}
	}
	return len(m.open) < maxMembers
}

// route is the address that was named for a queue; empty when there is none.
func (m *members) route(queue string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.routes[queue]
}

// learn notes the owner of a queue.
func (m *members) learn(queue, owner string) {
	if queue == "" || owner == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.routes) >= maxRoutes {
		clear(m.routes)
	}
	m.routes[queue] = owner
}

// leave goes on to the next address, and forgets what the lost member was said to have.
func (m *members) leave(address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := slices.Index(m.settings.addresses, address); at == m.current {
		m.current = (at + 1) % len(m.settings.addresses)
	}
	for queue, owner := range m.routes {
		if owner == address {
			delete(m.routes, queue)
		}
	}
}

func (m *members) close() {
	m.mu.Lock()
	m.closed = true
	open := m.open
	m.open = map[string]*member{}
	m.mu.Unlock()
	for _, each := range open {
		_ = each.conn.Close() // its only error is that it is closed already
	}
}

// ownerOf is the member that a refusal names; empty when it is not of that kind.
func ownerOf(refusal *Error, trailer metadata.MD) string {
	if refusal.Kind != kindNotOwner {
		return ""
	}
	if named := ownerIn(trailer); named != "" {
		return named
	}
	return refusal.owner
}

// ownerIn is the member that a trailer names; empty when there is none.
func ownerIn(trailer metadata.MD) string {
	if named := trailer.Get(ownerTrailer); len(named) > 0 {
		return namedAddress(named[0])
	}
	return ""
}

// namedAddress is an address as a server has named it; empty for what is none.
func namedAddress(address string) string {
	if checkAddress(address) != nil {
		return ""
	}
	return address
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || len(address) > maxAddress {
		return fmt.Errorf("%.300q is not of the form host:port", address)
	}
	return nil
}
