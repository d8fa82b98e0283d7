"""What fails too often becomes a dead letter, and goes back when it is mended."""

import os

from fila import Client

QUEUE = "example-letters"


def main() -> None:
    with Client(os.environ.get("FILA_ADDR", "localhost:5555")) as client:
        client.ensure_queue(QUEUE, max_attempts=2)
        client.enqueue(QUEUE, payload=b"broken")

        with client.consume(QUEUE) as messages:
            for message in messages:
                print(f"attempt {message.attempt_count + 1} fails")
                message.nack("cannot be read")
                if message.attempt_count + 1 == 2:
                    break

        for letter in client.peek(f"{QUEUE}.dlq", payload_bytes=100).messages:
            attempts = letter.dead_letter.attempts
            print(f"dead letter: {letter.payload.decode()}, {len(attempts)} attempts, the last: {attempts[-1].error}")

        print("back in the queue:", client.redrive(f"{QUEUE}.dlq"))
        with client.consume(QUEUE) as messages:
            message = next(messages)
            print("delivered:", message.payload.decode())
            message.ack()

        client.delete_queue(QUEUE, force=True)


if __name__ == "__main__":
    main()
