// A limit for each provider: who has no tokens waits, and nobody waits behind it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	fila "github.com/fila-dev/fila-go"
	"github.com/fila-dev/fila-go/filav1"
)

const queue = "example-throttling"

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
	// A message with the header "provider: slow" has the throttle key "provider:slow".
	config := &fila.QueueConfig{ThrottleHeaders: &filav1.HeaderNames{Names: []string{"provider"}}}
	if err := client.CreateQueue(ctx, queue, config); err != nil && !errors.Is(err, fila.ErrQueueAlreadyExists) {
		return err
	}
	if err := client.SetThrottle(ctx, "provider:slow", fila.Throttle{Rate: 0.01, Burst: 1}); err != nil {
		return err
	}
	fmt.Println("provider slow: one message now, the next in 100 seconds")

	for _, provider := range []string{"slow", "fast"} {
		for number := 1; number <= 3; number++ {
			payload := fmt.Appendf(nil, "%s-%d", provider, number)
			if _, err := client.Enqueue(ctx, queue, map[string]string{"provider": provider}, payload); err != nil {
				return err
			}
		}
	}

	consumer, err := client.Subscribe(queue)
	if err != nil {
		return err
	}
	taken, err := take(ctx, consumer, 4)
	if err != nil {
		return err
	}
	fmt.Println("delivered:", taken)

	if _, err := client.RemoveThrottle(ctx, "provider:slow"); err != nil {
		return err
	}
	if taken, err = take(ctx, consumer, 2); err != nil {
		return err
	}
	fmt.Println("without the limit:", taken)

	if err := consumer.Stop(ctx); err != nil {
		return err
	}
	_, err = client.DeleteQueue(ctx, queue, true)
	return err
}

func take(ctx context.Context, consumer *fila.Consumer, count int) (string, error) {
	taken := make([]string, count)
	for i := range taken {
		message, err := consumer.Next(ctx)
		if err != nil {
			return "", err
		}
		taken[i] = string(message.Payload)
		if err := message.Ack(ctx); err != nil {
			return "", err
		}
	}
	return strings.Join(taken, " "), nil
}
