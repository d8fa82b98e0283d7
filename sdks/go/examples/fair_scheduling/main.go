// One queue for many tenants: a flood of one does not delay the others.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	fila "github.com/fila-dev/fila-go"
)

const queue = "example-fairness"

// The broker asks this script for the fairness key of each message. The setting FairnessHeader would do too.
const script = `
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant }
end
`

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
	config := &fila.QueueConfig{OnEnqueue: proto.String(script), Quantum: proto.Uint32(1)}
	if err := client.CreateQueue(ctx, queue, config); err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		return err
	}

	if _, err := client.EnqueueMany(ctx, append(messages("bulk", 100), messages("acme", 2)...)); err != nil {
		return err
	}
	fmt.Println("enqueued 100 messages of bulk, then 2 of acme")

	var tenants []string
	for message, err := range client.Messages(ctx, queue) {
		if err != nil {
			return err
		}
		tenants = append(tenants, message.FairnessKey)
		if err := message.Ack(ctx); err != nil {
			return err
		}
		if len(tenants) == 6 {
			break
		}
	}
	fmt.Println("delivered:", strings.Join(tenants, " "))

	_, err = client.DeleteQueue(ctx, queue, true)
	return err
}

func messages(tenant string, count int) []fila.EnqueueMessage {
	made := make([]fila.EnqueueMessage, count)
	for i := range made {
		made[i] = fila.EnqueueMessage{Queue: queue, Headers: map[string]string{"tenant": tenant}}
	}
	return made
}
