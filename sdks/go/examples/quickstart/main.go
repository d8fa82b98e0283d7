// Sends a message, receives it and acks it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	fila "github.com/fila-dev/fila-go"
)

func main() {
	ctx := context.Background()
	client, err := fila.New(cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.CreateQueue(ctx, "orders", nil)
	if err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		log.Fatal(err)
	}
	id, err := client.Enqueue(ctx, "orders", map[string]string{"tenant": "acme"}, []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent", len(id) > 0)

	for message, err := range client.Messages(ctx, "orders") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("received", string(message.Payload))
		if err := message.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		break
	}
}
