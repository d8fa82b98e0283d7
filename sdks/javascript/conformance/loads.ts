import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { type Client, DeadlineExceededError, FilaError } from '../src/index.js';
import type { Table } from './operations.js';

const SHOWN_BYTES = 32;

const secondsSince = (began: number): number => (performance.now() - began) / 1000;

async function inParallel(concurrency: number, worker: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** `concurrency` tasks call the plain `enqueue`, `count` times in all. */
export async function produce(
  client: Client,
  request: Table,
  describe: (error: unknown) => Table,
): Promise<Table> {
  const { queue, count, size = 0, concurrency = 1, headers = {}, timeout_ms: timeoutMs = 60_000 } = request;
  const ids = new Array<string | null>(count).fill(null);
  const errors: Table[] = [];
  const began = performance.now();
  let next = 0;
  await inParallel(concurrency, async () => {
    while (next < count) {
      const number = next++;
      try {
        ids[number] = await client.enqueue(queue, headers, `${number} `.padEnd(size, 'x'), {
          timeoutMs,
        });
      } catch (error) {
        errors.push(describe(error));
      }
    }
  });
  return { ids, errors, seconds: secondsSince(began) };
}

/** Handles and acks until `count` are acked. */
export async function work(client: Client, request: Table): Promise<Table> {
  const {
    queue,
    count,
    max_in_flight,
    concurrency = 1,
    handler_ms = 0,
    timeout_ms: timeoutMs = 60_000,
  } = request;
  const ids: string[] = [];
  const payloads: string[] = [];
  const began = performance.now();
  const over = AbortSignal.timeout(timeoutMs);
  const consumer = client.consume(queue, { maxInFlight: max_in_flight, signal: over });
  let open = count as number;
  const handle = async (): Promise<void> => {
    while (open > 0) {
      open--;
      const { value: message } = await consumer.next();
      if (message === undefined) return;
      if (handler_ms > 0) await sleep(handler_ms);
      try {
        await message.ack();
        ids.push(message.id);
        payloads.push(message.payload.subarray(0, SHOWN_BYTES).toString());
      } catch (error) {
        if (!(error instanceof FilaError)) throw error;
        open++; // it comes again
      }
    }
  };
  try {
    // One whose message comes again may be the last: then others have ended already.
    while (ids.length < count && !over.aborted) await inParallel(concurrency, handle);
  } finally {
    await consumer.stop();
  }
  if (ids.length < count) {
    throw new DeadlineExceededError(`${ids.length} of ${count} were acked`, {
      kind: 'DEADLINE_EXCEEDED',
    });
  }
  return { ids, payloads, seconds: secondsSince(began) };
}

/** The time from before `enqueue` to having the message, with a consumer in the same process. */
export async function latency(client: Client, request: Table): Promise<Table> {
  const { queue, count, rate, size = 0 } = request;
  const took: number[] = [];
  const sent = new Map<string, number>();
  const acks: Promise<void>[] = [];
  const consumer = client.consume(queue);
  const receiving = (async () => {
    for await (const message of consumer) {
      took.push(performance.now() - (sent.get(message.headers.number ?? '') ?? 0));
      acks.push(message.ack());
      if (took.length === count) return;
    }
  })();
  const began = performance.now();
  const payload = Buffer.alloc(size);
  const sends: Promise<string>[] = [];
  for (let number = 0; number < count; number++) {
    const wait = began + (number * 1000) / rate - performance.now();
    if (wait > 0) await sleep(wait);
    sent.set(String(number), performance.now());
    sends.push(client.enqueue(queue, { number: String(number) }, payload));
  }
  await receiving;
  await Promise.all([...sends, ...acks]);
  took.sort((a, b) => a - b);
  const at = (share: number): number => (took[Math.floor((took.length - 1) * share)] ?? 0) * 1000;
  return { p50_us: at(0.5), p99_us: at(0.99) };
}

/** Enqueues, consumes and acks, all at once. */
export async function lifecycle(
  client: Client,
  request: Table,
  describe: (error: unknown) => Table,
): Promise<Table> {
  const began = performance.now();
  await Promise.all([produce(client, request, describe), work(client, request)]);
  return { seconds: secondsSince(began) };
}
