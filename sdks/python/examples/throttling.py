"""A limit for each provider: who has no tokens waits, and nobody waits behind it."""

import os

from fila import Client, ConsumeMessage, Consumer

QUEUE = "example-throttling"


def take(messages: Consumer[ConsumeMessage], count: int) -> list[str]:
    taken = []
    for message in messages:
        taken.append(message.payload.decode())
        message.ack()
        if len(taken) == count:
            break
    return taken


def main() -> None:
    with Client(os.environ.get("FILA_ADDR", "localhost:5555")) as client:
        # A message with the header "provider: slow" has the throttle key "provider:slow".
        client.ensure_queue(QUEUE, throttle_headers=["provider"])
        client.set_config("throttle.provider:slow", "rate=0.01,burst=1")
        print("provider slow: one message now, the next in 100 seconds")

        for provider in ("slow", "fast"):
            for number in (1, 2, 3):
                client.enqueue(QUEUE, {"provider": provider}, f"{provider}-{number}".encode())

        with client.consume(QUEUE) as messages:
            print("delivered:", *take(messages, 4))
            client.delete_config("throttle.provider:slow")
            print("without the limit:", *take(messages, 2))

        client.delete_queue(QUEUE, force=True)


if __name__ == "__main__":
    main()
