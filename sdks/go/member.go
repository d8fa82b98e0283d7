// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc"
	connbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	writeBuffer   = 256 << 10
	readBuffer    = 128 << 10
	receiveWindow = 4 << 20
)

// member is the connection to one server.
type member struct {
	address string
	conn    *grpc.ClientConn

	mu        sync.Mutex
	trouble   error
	unsafeTLS bool // the trouble is one of TLS
}

func dialMember(address string, s *settings) (*member, *Error) {
	m := &member{address: address}
	secure := insecure.NewCredentials()
	if s.tls != nil {
		secure = &watchedTLS{credentials.NewTLS(s.tls), m}
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithContextDialer(m.dial),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           connbackoff.Config{BaseDelay: backoffFirst, Multiplier: 2, Jitter: 0.5, MaxDelay: backoffMost},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.maxResponseBytes)),
		// A batch is one write to the socket. The windows are fixed, since gRPC would ask the broker for the round-trip time
		// again and again to find better ones.
		grpc.WithWriteBufferSize(writeBuffer), grpc.WithReadBufferSize(readBuffer),
		grpc.WithInitialWindowSize(receiveWindow), grpc.WithInitialConnWindowSize(receiveWindow),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithUserAgent("fila-go/" + Version),
	}
	if s.key != nil {
		options = append(options, s.key.dialOptions()...)
	}
	conn, err := grpc.NewClient("passthrough:///"+url.PathEscape(address), options...)
	if err != nil {
		return nil, invalid("address " + address + ": " + err.Error())
	}
	m.conn = conn
	return m, nil
}

// dial notes why there is no connection, which the states of a grpc.ClientConn do not tell.
func (m *member) dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	m.note(err, false)
	return conn, err
}

func (m *member) note(err error, tls bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble, m.unsafeTLS = err, tls && err != nil
}

// ready waits until calls can be sent. Its error means that nothing was sent.
func (m *member) ready(ctx context.Context) *Error {
	for {
		state := m.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Shutdown: // it made room for others, or the client is closed
			return unavailable(m.address+" is not in use any more", nil)
		case connectivity.TransientFailure: // gRPC tries again at its own pace
			return m.unreachable()
		case connectivity.Idle:
			m.conn.Connect()
		}
		if !m.conn.WaitForStateChange(ctx, state) {
			return m.unreachable()
		}
	}
}

func (m *member) unreachable() *Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.address + " cannot be reached"
	if m.trouble == nil {
		return unavailable(text, nil)
	}
	if m.unsafeTLS {
		made := unavailable(m.address+": "+m.trouble.Error(), errors.Join(ErrTLS, m.trouble))
		made.Retryable = false
		return made
	}
	return unavailable(text+": "+m.trouble.Error(), m.trouble)
}

// watchedTLS notes why there is no secure connection. Such an error is not tried again: the next attempt would find the
// same certificates.
type watchedTLS struct {
	credentials.TransportCredentials
	member *member
}

func (w *watchedTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		w.member.note(err, ctx.Err() == nil && !wasCut(err))
		return conn, info, err
	}
	return &watchedConn{conn, w.member}, info, nil
}

func (w *watchedTLS) Clone() credentials.TransportCredentials {
	return &watchedTLS{w.TransportCredentials.Clone(), w.member}
}

// remoteAlert is the operation of crypto/tls for an alert of the peer.
const remoteAlert = "remote error"

// wasCut: the connection ended within the handshake, as one does to a server that restarts, or to a balancer without
// servers. That says nothing about certificates.
func wasCut(err error) bool {
	var lost *net.OpError
	if errors.As(err, &lost) {
		return lost.Op != remoteAlert
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// watchedConn notes the alert of a server that does not accept the client's certificate: with TLS 1.3 it comes after
// the handshake.
type watchedConn struct {
	net.Conn
	member *member
}

func (c *watchedConn) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	var alert *net.OpError
	if err != nil && errors.As(err, &alert) && alert.Op == remoteAlert {
		c.member.note(err, true)
	}
	return count, err
}
