"""One queue for many tenants: a flood of one does not delay the others."""

import os

from fila import Client, OutgoingMessage

QUEUE = "example-fairness"
# The broker asks this script for the fairness key of each message. The setting fairness_header would do too.
SCRIPT = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant }
end
"""


def main() -> None:
    with Client(os.environ.get("FILA_ADDR", "localhost:5555")) as client:
        client.ensure_queue(QUEUE, on_enqueue=SCRIPT, quantum=1)

        client.enqueue_many(QUEUE, [OutgoingMessage(b"newsletter", {"tenant": "bulk"}) for _ in range(100)])
        client.enqueue_many(QUEUE, [OutgoingMessage(b"password reset", {"tenant": "acme"}) for _ in range(2)])
        print("enqueued 100 messages of bulk, then 2 of acme")

        tenants = []
        with client.consume(QUEUE) as messages:
            for message in messages:
                tenants.append(message.fairness_key)
                message.ack()
                if len(tenants) == 6:
                    break
        print("delivered:", *tenants)

        client.delete_queue(QUEUE, force=True)


if __name__ == "__main__":
    main()
