// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"sync"
	"time"
)

// Option sets something of a [Client].
type Option func(*settings) error

type settings struct {
	addresses   []string
	timeout     time.Duration
	tls         *tls.Config
	key         *apiKey
	bufferBytes int64
	// maxResponseBytes is the largest response that the client takes.
	maxResponseBytes int
	propagator       Propagator
}

// checkAddresses leaves each address once: one that is listed twice could not be left.
func (s *settings) checkAddresses() error {
	if len(s.addresses) == 0 {
		return invalid("an address is needed")
	}
	var once []string
	for _, each := range s.addresses {
		if err := checkAddress(each); err != nil {
			return invalid("an address has the form host:port: " + err.Error())
		}
		if !slices.Contains(once, each) {
			once = append(once, each)
		}
	}
	s.addresses = once
	return nil
}

// Propagator carries the trace context between a [context.Context] and the headers of a message. The module
// github.com/fila-dev/fila-go/filaotel has one for OpenTelemetry.
type Propagator interface {
	// Inject adds headers for the trace context of ctx.
	Inject(ctx context.Context, headers map[string]string)
	// Extract returns ctx with the trace context of the headers.
	Extract(ctx context.Context, headers map[string]string) context.Context
}

// WithAddresses adds members of a cluster. The first that answers is used; when it is lost, the next one is tried.
func WithAddresses(addresses ...string) Option {
	return func(s *settings) error { s.addresses = append(s.addresses, addresses...); return nil }
}

// WithTimeout sets how long a call may last whose context has no deadline. The default is 30 seconds.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return invalid("the timeout must be positive")
		}
		s.timeout = timeout
		return nil
	}
}

// WithTLS encrypts connections. A nil configuration trusts the authorities of the system.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		s.tls = config.Clone()
		return nil
	}
}

// TLSFiles names the PEM files of a TLS connection.
type TLSFiles struct {
	// CA has the authorities to trust; empty means those of the system.
	CA string
	// Cert and Key show the broker who the client is (mTLS). Both are read anew for each connection, so they can be
	// renewed in place.
	Cert, Key string
	// ServerName is the name that the broker's certificate must have, if it is not the host of the address.
	ServerName string
}

// WithTLSFiles encrypts connections with certificates from files.
func WithTLSFiles(files TLSFiles) Option {
	return func(s *settings) error {
		config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: files.ServerName}
		if files.CA != "" {
			pem, err := os.ReadFile(files.CA)
			if err != nil {
				return invalid("the CA cannot be read: " + err.Error())
			}
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(pem) {
				return invalid("there is no certificate in " + files.CA)
			}
		}
		if (files.Cert == "") != (files.Key == "") {
			return invalid("a client certificate needs Cert and Key")
		}
		if files.Cert != "" {
			pair := &clientPair{files: files}
			if _, err := pair.current(nil); err != nil {
				return invalid("the client certificate cannot be read: " + err.Error())
			}
			config.GetClientCertificate = pair.current
		}
		s.tls = config
		return nil
	}
}

// clientPair is the client's certificate and key. While the files are being renewed they may not belong together: the
// last pair that did is shown then.
type clientPair struct {
	files TLSFiles
	mu    sync.Mutex
	last  *tls.Certificate
}

func (p *clientPair) current(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	read, err := tls.LoadX509KeyPair(p.files.Cert, p.files.Key)
	if err == nil {
		p.last = &read
	}
	if p.last == nil {
		return nil, err
	}
	return p.last, nil
}

// WithAPIKey sends a key, or a token of an identity provider, with every call.
func WithAPIKey(key string) Option {
	return func(s *settings) (err error) { s.key, err = newAPIKey(key, ""); return err }
}

// WithAPIKeyFile sends the key that a file has. The file is read again when it has changed.
func WithAPIKeyFile(path string) Option {
	return func(s *settings) (err error) { s.key, err = newAPIKey("", path); return err }
}

// WithBufferBytes bounds the memory of messages that wait to be sent or answered: their bytes, and 256 for each. Beyond
// it, Enqueue waits. The default is 16 MiB.
func WithBufferBytes(bytes int64) Option {
	return func(s *settings) error {
		if bytes <= 0 {
			return invalid("the buffer must be positive")
		}
		s.bufferBytes = bytes
		return nil
	}
}

// WithMaxResponseBytes sets the largest response that the client takes. The default is 64 MiB. A server whose limits are
// higher needs more: MaxResponseBytes of the Limits of [Client.Describe].
func WithMaxResponseBytes(bytes int) Option {
	return func(s *settings) error {
		if bytes <= 0 {
			return invalid("the largest response must be positive")
		}
		s.maxResponseBytes = bytes
		return nil
	}
}

// WithPropagator sends the trace context along with messages.
func WithPropagator(propagator Propagator) Option {
	return func(s *settings) error { s.propagator = propagator; return nil }
}
