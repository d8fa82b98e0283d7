import { randomUUID } from 'node:crypto';

import type { CallOptions, Connection } from './connection.js';
import { Deque } from './deque.js';
import { encodeTail } from './encoding.js';
import { type FilaError, fromWire, InternalError } from './errors.js';
import { type Codec, Exchange } from './exchange.js';
import { EnqueueBatchResponse, FilaServiceService } from './generated/fila/v1/service.js';
import { Pending } from './pending.js';
import type { Batch } from './send-window.js';

const MAX_BATCH_MESSAGES = 1000;
const MAX_BATCH_BYTES = 1 << 20;

/** What an enqueue gave: the id, and whether an earlier message with the dedup key has it. */
export interface Enqueued {
  id: string;
  duplicate: boolean;
}

const NOTHING = Buffer.alloc(0);

class Enqueue extends Pending<Enqueued> {
  constructor(
    public frame: Buffer,
    timeoutMs: number,
    signal?: AbortSignal,
  ) {
    super(timeoutMs, signal);
  }
}

/** Numbers the batches, for each member of a cluster by itself. A batch keeps its name and number for ever. */
export class EnqueueCodec implements Codec<Enqueue> {
  /** Less than the ten minutes for which the broker remembers a producer that is silent. */
  readonly repeatableMs = 540_000;
  readonly #base = randomUUID();
  readonly #producers = new Map<string, { id: string; sequence: number }>();

  make(waiting: Deque<Enqueue>, address: string): Batch<Enqueue> | undefined {
    const items: Enqueue[] = [];
    const parts: Buffer[] = [];
    let size = 0;
    for (let item = waiting.peek(); item !== undefined; item = waiting.peek()) {
      if (!item.done) {
        if (
          items.length >= MAX_BATCH_MESSAGES ||
          (items.length > 0 && size + item.frame.length > MAX_BATCH_BYTES)
        )
          break;
        items.push(item);
        parts.push(item.frame);
        size += item.frame.length;
      }
      waiting.shift();
    }
    if (items.length === 0) return undefined;
    let producer = this.#producers.get(address);
    if (producer === undefined) {
      producer = { id: `${this.#base}-${this.#producers.size}`, sequence: 0 };
      this.#producers.set(address, producer);
    }
    const sequence = ++producer.sequence;
    parts.push(encodeTail(producer.id, sequence));
    return { data: Buffer.concat(parts), items, sequence };
  }

  answer(
    batch: Batch<Enqueue>,
    data: Buffer,
    refuse: (item: Enqueue, error: FilaError) => void,
  ): FilaError | undefined {
    const response = EnqueueBatchResponse.decode(data);
    if (response.sequence !== batch.sequence) {
      throw new InternalError(`the answer to batch ${batch.sequence} names batch ${response.sequence}`);
    }
    if (response.error !== undefined) return fromWire(response.error);
    const { results } = response;
    if (results.length !== batch.items.length) {
      throw new InternalError(`${results.length} results for ${batch.items.length} messages`);
    }
    if (results.some(({ messageId, error }) => messageId === '' && error === undefined)) {
      throw new InternalError('a result without an id');
    }
    batch.items.forEach((item, index) => {
      const { messageId, duplicate, error } = results[index] as (typeof results)[number];
      if (error !== undefined) refuse(item, fromWire(error));
      // Of a batch that is sent again, `duplicate` tells that the first attempt arrived, and nothing of the message.
      else item.resolve({ id: messageId, duplicate: duplicate && !item.unsure });
    });
    return undefined;
  }
}

/** Enqueues: calls of one turn of the event loop travel together. What is unanswered is bounded in bytes. */
export class Producer {
  readonly #exchange: Exchange<Enqueue>;
  readonly #connection: Connection;
  readonly #maxBytes: number;
  readonly #blocked = new Deque<Enqueue>();
  #bytes = 0;

  constructor(connection: Connection, maxBytes: number) {
    this.#connection = connection;
    this.#maxBytes = maxBytes;
    this.#exchange = new Exchange(connection, FilaServiceService.enqueueStream.path, new EnqueueCodec());
  }

  /** Whether further messages have to wait for room. */
  get isFull(): boolean {
    return this.#bytes >= this.#maxBytes || this.#blocked.length > 0;
  }

  /** Sends an encoded message. Beyond the bound it waits for room, so the promise is the backpressure. */
  send(frame: Buffer, { timeoutMs = this.#connection.timeoutMs, signal }: CallOptions): Promise<Enqueued> {
    const item = new Enqueue(frame, timeoutMs, signal);
    if (item.done) return item.promise;
    if (this.#hasRoom(frame.length) && this.#blocked.length === 0) {
      this.#enter(item);
    } else {
      item.onDone = () => {
        item.frame = NOTHING;
        this.#exchange.forget(item);
      };
      this.#blocked.sieve((other) => !other.done);
      this.#blocked.push(item);
      this.#exchange.expire(item);
    }
    return item.promise;
  }

  #enter(item: Enqueue): void {
    const size = item.frame.length;
    this.#bytes += size;
    item.onDone = () => {
      item.frame = NOTHING;
      this.#leave(size);
    };
    this.#exchange.submit(item);
  }

  /** A message larger than the bound travels alone. */
  #hasRoom(size: number): boolean {
    return this.#bytes === 0 || this.#bytes + size <= this.#maxBytes;
  }

  #leave(size: number): void {
    this.#bytes -= size;
    for (let next = this.#blocked.peek(); next !== undefined; next = this.#blocked.peek()) {
      if (!next.done && !this.#hasRoom(next.frame.length)) return;
      this.#blocked.shift();
      if (!next.done) this.#enter(next);
    }
  }

  close(): void {
    this.#blocked.clear(); // the exchange knows them, too, and tells their callers
    this.#exchange.close();
  }
}
