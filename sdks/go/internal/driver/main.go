// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

// The driver of the Go SDK for the conformance suite: one JSON request a line from standard input, one JSON answer a
// line to standard output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	fila "github.com/fila-dev/fila-go"
)

// errUnsupported: the driver does not know the operation.
var errUnsupported = errors.New("unknown operation")

type table = map[string]any

// driver has clients, consumers and messages by name.
type driver struct {
	mu        sync.Mutex
	clients   map[string]*fila.Client
	consumers map[string]*fila.Consumer
	held      map[string]*fila.ConsumeMessage
}

type operation func(*driver, context.Context, *request) (table, error)

var operations = map[string]operation{
	"hello":          (*driver).hello,
	"connect":        (*driver).connect,
	"close":          (*driver).close,
	"describe":       (*driver).describe,
	"create_queue":   (*driver).createQueue,
	"delete_queue":   (*driver).deleteQueue,
	"list_queues":    (*driver).listQueues,
	"stats":          (*driver).stats,
	"set_config":     (*driver).setConfig,
	"get_config":     (*driver).getConfig,
	"delete_config":  (*driver).deleteConfig,
	"list_config":    (*driver).listConfig,
	"enqueue":        (*driver).enqueue,
	"enqueue_many":   (*driver).enqueueMany,
	"cancel_enqueue": (*driver).cancelEnqueue,
	"produce":        (*driver).produce,
	"consume":        (*driver).consume,
	"next":           (*driver).next,
	"ack":            (*driver).settle,
	"nack":           (*driver).settle,
	"release":        (*driver).settle,
	"reject":         (*driver).settle,
	"extend":         (*driver).settle,
	"ack_by_id":      (*driver).ackByID,
	"nack_by_id":     (*driver).nackByID,
	"stop":           (*driver).stop,
	"work":           (*driver).work,
	"explain":        (*driver).explain,
	"redrive":        (*driver).redrive,
	"peek":           (*driver).peek,
	"resources":      (*driver).resources,
	"latency":        (*driver).latency,
	"lifecycle":      (*driver).lifecycle,
}

func main() {
	d := &driver{clients: map[string]*fila.Client{}, consumers: map[string]*fila.Consumer{}, held: map[string]*fila.ConsumeMessage{}}
	if err := d.run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run answers requests, each in a goroutine of its own, until the input ends.
func (d *driver) run(input io.Reader, output io.Writer) error {
	lines := bufio.NewReaderSize(input, 1<<20)
	var writing sync.Mutex
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var one request
			if err := json.Unmarshal(line, &one); err != nil {
				return fmt.Errorf("a request that is not JSON: %w", err)
			}
			go func() {
				answer := d.answer(&one)
				writing.Lock()
				defer writing.Unlock()
				if err := encoder.Encode(answer); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *driver) answer(one *request) table {
	run, known := operations[one.Op]
	if !known {
		return table{"id": one.ID, "error": described(errUnsupported)}
	}
	given, err := run(d, context.Background(), one)
	if err != nil {
		return table{"id": one.ID, "error": described(err)}
	}
	if given == nil {
		given = table{}
	}
	return table{"id": one.ID, "ok": given}
}

func (d *driver) client(one *request) (*fila.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.clients[one.clientName()]
	if found == nil {
		return nil, &fila.Error{Kind: fila.KindClosed, Message: "there is no client " + one.clientName()}
	}
	return found, nil
}

// sentinels are the errors of the SDK, the most exact first.
var sentinels = []struct {
	name  string
	value error
}{
	{"ErrTLS", fila.ErrTLS},
	{"ErrQueueNotFound", fila.ErrQueueNotFound},
	{"ErrQueueAlreadyExists", fila.ErrQueueAlreadyExists},
	{"ErrMessageNotFound", fila.ErrMessageNotFound},
	{"ErrConfigNotFound", fila.ErrConfigNotFound},
	{"ErrInvalidArgument", fila.ErrInvalidArgument},
	{"ErrFailedPrecondition", fila.ErrFailedPrecondition},
	{"ErrLimitExceeded", fila.ErrLimitExceeded},
	{"ErrQueueFull", fila.ErrQueueFull},
	{"ErrOverloaded", fila.ErrOverloaded},
	{"ErrUnavailable", fila.ErrUnavailable},
	{"ErrUnauthenticated", fila.ErrUnauthenticated},
	{"ErrPermissionDenied", fila.ErrPermissionDenied},
	{"ErrUnsupported", fila.ErrUnsupported},
	{"ErrInternal", fila.ErrInternal},
	{"ErrTimeout", fila.ErrTimeout},
	{"ErrCancelled", fila.ErrCancelled},
	{"ErrClosed", fila.ErrClosed},
}

// described is an error as the protocol of the suite has it.
func described(err error) table {
	var failed *fila.Error
	switch {
	case errors.Is(err, errUnsupported):
		failed = &fila.Error{Kind: "UNSUPPORTED_OP", Message: err.Error()}
	case !errors.As(err, &failed):
		failed = &fila.Error{Kind: "INTERNAL", Message: err.Error()}
	}
	name := fmt.Sprintf("%T", err)
	for _, each := range sentinels {
		if errors.Is(err, each.value) {
			name = each.name
			break
		}
	}
	return table{"kind": string(failed.Kind), "type": name, "message": failed.Message, "retryable": failed.Retryable}
}
