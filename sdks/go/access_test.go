// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	fila "github.com/fila-dev/fila-go"
	"github.com/fila-dev/fila-go/internal/filatest"
)

func TestTLSWithClientCertificatesAndKeys(t *testing.T) {
	authority, stranger := filatest.NewAuthority(t), filatest.NewAuthority(t)
	cert, key := authority.Pair(t, "server")
	s := filatest.Start(t, fmt.Sprintf("[tls]\ncert = %q\nkey = %q\nclient_ca = %q\nclient_auth = \"required\"\n", cert, key, authority.CA))
	address := strings.Replace(s.Addr, "127.0.0.1", "localhost", 1)
	ours := fila.TLSFiles{CA: authority.CA}
	ours.Cert, ours.Key = authority.Pair(t, "client")
	c := client(t, address, fila.WithTLSFiles(ours))
	name := queue(t, c, nil)
	enqueue(t, c, name, "secret")

	theirs := ours
	theirs.Cert, theirs.Key = stranger.Pair(t, "client")
	misnamed := ours
	misnamed.ServerName = "other.example"
	for what, files := range map[string]fila.TLSFiles{
		"no certificate":   {CA: authority.CA},
		"another one's":    theirs,
		"untrusted server": {CA: stranger.CA, Cert: ours.Cert, Key: ours.Key},
		"another name":     misnamed,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := client(t, address, fila.WithTLSFiles(files)).Enqueue(ctx, name, nil, nil); !errors.Is(err, fila.ErrTLS) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestKeysAndRights(t *testing.T) {
	s := filatest.Start(t, "")
	key := s.FirstKey(t)
	c := client(t, s.Addr, fila.WithAPIKey(key))
	name := queue(t, c, nil)
	enqueue(t, c, name, "x")
	for what, other := range map[string]*fila.Client{
		"none":  client(t, s.Addr),
		"wrong": client(t, s.Addr, fila.WithAPIKey(key[:len(key)-4]+"0000")),
	} {
		_, enqueued := other.Enqueue(deadline(t), name, nil, nil)
		_, listed := other.ListQueues(deadline(t))
		_, consumed := other.Consume(deadline(t), name)
		for _, err := range []error{enqueued, listed, consumed} {
			if !errors.Is(err, fila.ErrUnauthenticated) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
