// What fails too often becomes a dead letter, and goes back when it is mended.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"google.golang.org/protobuf/proto"

	fila "github.com/fila-dev/fila-go"
)

const queue = "example-letters"

func main() {
	if err := run(context.Background(), cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string) error {
	client, err := fila.New(address)
	if err != nil {
		return err
	}
	defer client.Close()
	config := &fila.QueueConfig{MaxAttempts: proto.Uint32(2)}
	if err := client.CreateQueue(ctx, queue, config); err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		return err
	}
	if _, err := client.Enqueue(ctx, queue, nil, []byte("broken")); err != nil {
		return err
	}

	for message, err := range client.Messages(ctx, queue) {
		if err != nil {
			return err
		}
		fmt.Println("attempt", message.AttemptCount+1, "fails")
		if err := message.Nack(ctx, "cannot be read"); err != nil {
			return err
		}
		if message.AttemptCount+1 == 2 {
			break
		}
	}

	for letter, err := range client.Peek(ctx, queue+".dlq", fila.PeekOptions{PayloadBytes: 100}) {
		if err != nil {
			return err
		}
		attempts := letter.GetMessage().GetMetadata().GetDeadLetter().GetAttempts()
		last := attempts[len(attempts)-1]
		fmt.Printf("dead letter: %s, %d attempts, the last: %s\n", letter.GetMessage().GetPayload(), len(attempts), last.GetError())
	}

	count, err := client.Redrive(ctx, queue+".dlq", fila.SweepOptions{})
	if err != nil {
		return err
	}
	fmt.Println("back in the queue:", count)
	for message, err := range client.Messages(ctx, queue) {
		if err != nil {
			return err
		}
		fmt.Println("delivered:", string(message.Payload))
		if err := message.Ack(ctx); err != nil {
			return err
		}
		break
	}

	_, err = client.DeleteQueue(ctx, queue, true)
	return err
}
