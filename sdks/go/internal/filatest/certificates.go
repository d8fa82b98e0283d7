// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package filatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	// CA is the file with its certificate.
	CA     string
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{folder: t.TempDir()}
	a.cert = template("authority")
	a.cert.IsCA, a.cert.BasicConstraintsValid = true, true
	a.cert.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.CA, _ = a.issue(t, a.cert)
	return a
}

// Pair makes the certificate and the key of a server on this machine, or of a client.
func (a *Authority) Pair(t testing.TB, name string) (cert, key string) {
	t.Helper()
	made := template(name)
	made.DNSNames = []string{"localhost"}
	made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return a.issue(t, made)
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (a *Authority) issue(t testing.TB, made *x509.Certificate) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil { // the authority signs itself
		a.key, signer = private, private
	}
	signed, err := x509.CreateCertificate(rand.Reader, made, a.cert, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	name := made.Subject.CommonName
	return a.write(t, name+".pem", "CERTIFICATE", signed), a.write(t, name+".key", "PRIVATE KEY", secret)
}

func (a *Authority) write(t testing.TB, name, kind string, data []byte) string {
	t.Helper()
	path := filepath.Join(a.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
