// Copyright 2026 The Fila Authors
// SPDX-License-Identifier: Apache-2.0

package fila_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"google.golang.org/protobuf/proto"

	fila "github.com/fila-dev/fila-go"
)

// address is of a server that has the queues orders, mails and invoices.
var address = "localhost:5555"

func Example() {
	ctx := context.Background()
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.CreateQueue(ctx, "greetings", nil); err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		log.Fatal(err)
	}
	if _, err := client.Enqueue(ctx, "greetings", nil, []byte("hello")); err != nil {
		log.Fatal(err)
	}
	for message, err := range client.Messages(ctx, "greetings") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", message.Payload)
		if err := message.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		break
	}
	// Output: hello
}

func ExampleClient_Enqueue() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = client.Enqueue(ctx, "nowhere", map[string]string{"tenant": "acme"}, []byte("hello"), fila.Delay(time.Minute))
	if errors.Is(err, fila.ErrQueueNotFound) {
		fmt.Println("create the queue first")
	}
	// Output: create the queue first
}

func ExampleClient_EnqueueMany() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	results, err := client.EnqueueMany(context.Background(), []fila.EnqueueMessage{
		{Queue: "orders", Payload: []byte("one")},
		{Queue: "orders", Payload: []byte("two"), DedupKey: "order-2"},
		{Queue: "nowhere"},
	})
	fmt.Println(errors.Is(err, fila.ErrQueueNotFound))
	for _, result := range results {
		fmt.Println(result.ID != "", result.Err)
	}
	// Output:
	// true
	// true <nil>
	// true <nil>
	// false fila: QUEUE_NOT_FOUND: queue "nowhere" does not exist
}

func ExampleClient_Consume() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Enqueue(context.Background(), "mails", nil, []byte("to acme")); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	messages, err := client.Consume(ctx, "mails", fila.MaxInFlight(50))
	if err != nil {
		log.Fatal(err)
	}
	for message := range messages { // until the context ends
		fmt.Printf("%s\n", message.Payload)
		if err := client.Ack(context.Background(), "mails", message.ID); err != nil {
			log.Print(err)
		}
		stop()
	}
	// Output: to acme
}

func ExampleClient_Subscribe() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Enqueue(context.Background(), "invoices", nil, []byte("42 EUR")); err != nil {
		log.Fatal(err)
	}
	consumer, err := client.Subscribe("invoices")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	message, err := consumer.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := consumer.Stop(ctx); err != nil { // no more messages; what the program has stays its own
		log.Fatal(err)
	}
	fmt.Printf("%s\n", message.Payload)
	if err := message.Ack(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 42 EUR
}

func ExampleClient_CreateQueue() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	config := &fila.QueueConfig{FairnessHeader: proto.String("tenant"), MaxAttempts: proto.Uint32(5)}
	err = client.CreateQueue(context.Background(), "orders", config)
	fmt.Println(errors.Is(err, fila.ErrQueueAlreadyExists))
	// Output: true
}

func ExampleClient_SetThrottle() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.SetThrottle(ctx, "provider:aws", fila.Throttle{Rate: 50, Burst: 100}); err != nil {
		log.Fatal(err)
	}
	entries, err := client.ListConfig(ctx, "throttle.provider:aws")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entries)
	// Output: map[throttle.provider:aws:rate=50,burst=100]
}

func ExampleClient_Redrive() {
	client, err := fila.New(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	for letter, err := range client.Peek(ctx, "orders.dlq", fila.PeekOptions{PayloadBytes: 100}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", letter.GetMessage().GetPayload())
	}
	count, err := client.Redrive(ctx, "orders.dlq", fila.SweepOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(count, "go back")
	// Output: 0 go back
}

func ExampleWithTLSFiles() {
	_, err := fila.New("broker.example:5555",
		fila.WithTLSFiles(fila.TLSFiles{CA: "ca.pem", Cert: "client.pem", Key: "client.key"}),
		fila.WithAPIKeyFile("/run/secrets/fila-key"))
	fmt.Println(errors.Is(err, fila.ErrInvalidArgument)) // there are no such files here
	// Output: true
}
