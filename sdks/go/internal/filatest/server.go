// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

// Package filatest runs a real fila-server for tests.
package filatest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a server may take to start.
const patience = 30 * time.Second

// Server is a process of fila-server with data of its own.
type Server struct {
	// Addr is the same over all starts.
	Addr   string
	folder string
	mu     sync.Mutex
	log    bytes.Buffer
	run    *exec.Cmd
}

// program is the server to test with: the variable FILA_SERVER, or that of the repository.
func program() (string, error) {
	if named := os.Getenv("FILA_SERVER"); named != "" {
		return named, nil
	}
	for folder, err := os.Getwd(); err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if found := filepath.Join(folder, ".venv", "bin", "fila-server"); exists(found) {
			return found, nil
		}
	}
	return "", errors.New("there is no fila-server: set FILA_SERVER")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Start runs a server until the end of the test. config is more text for its configuration file.
func Start(t testing.TB, config string) *Server {
	t.Helper()
	s, err := startIn(t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func startIn(folder, config string) (*Server, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: free.Addr().String(), folder: folder}
	_ = free.Close()
	config = "[log]\nlevel = \"warning\"\n" + config
	if err := os.WriteFile(filepath.Join(folder, "fila.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	return s, s.start()
}

// Shared is one server for several tests.
type Shared struct {
	mu     sync.Mutex
	server *Server
}

// Addr is its address. It is started when it is asked for the first time.
func (s *Shared) Addr() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		folder, err := os.MkdirTemp("", "fila-go-")
		if err != nil {
			return "", err
		}
		made, err := startIn(folder, "")
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(folder))
		}
		s.server = made
	}
	return s.server.Addr, nil
}

// End kills the server, if there is one, and removes its data.
func (s *Shared) End() {
	if s.server != nil {
		s.server.Kill()
		_ = os.RemoveAll(s.server.folder)
	}
}

// Again starts the server that was killed, with the same data and address.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) start() error {
	name, err := program()
	if err != nil {
		return err
	}
	run := exec.Command(name, "--config", "fila.toml", "--listen", s.Addr, "--data-dir", "data")
	run.Dir = s.folder
	run.Stdout, run.Stderr = s, s
	if err := run.Start(); err != nil {
		return err
	}
	s.run = run
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("the server did not start: %w\n%s", err, s.text())
		}
	}
}

// Write keeps what the server says.
func (s *Server) Write(said []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(said)
}

func (s *Server) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.run == nil {
		return
	}
	_ = s.run.Process.Kill()
	_ = s.run.Wait() // its error is that it was killed
	s.run = nil
}

// FirstKey creates the key with which a server without keys is opened.
func (s *Server) FirstKey(t testing.TB) string {
	t.Helper()
	server, err := program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(filepath.Dir(server), "fila"), "--addr", s.Addr, "auth", "init")
	var said bytes.Buffer
	command.Stderr = &said
	key, err := command.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, said.String()))
	}
	return strings.TrimSpace(string(key))
}
