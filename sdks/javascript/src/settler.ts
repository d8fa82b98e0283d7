import { text, whole } from './arguments.js';
import type { CallOptions, Connection } from './connection.js';
import type { Deque } from './deque.js';
import { type FilaError, fromWire, InternalError } from './errors.js';
import { type Codec, Exchange } from './exchange.js';
import { FilaServiceService, SettleRequest, SettleResponse } from './generated/fila/v1/service.js';
import type { InFlight } from './in-flight.js';
import { Pending } from './pending.js';
import type { Batch } from './send-window.js';

const MAX_BATCH_IDS = 5000;
/** The broker keeps so many bytes of the text of an error. */
const MAX_ERROR = 1024;

/** What to do with messages of one queue that are held under one lease; without a lease id, under any. */
export interface Settlement {
  readonly queue: string;
  readonly leaseId: string;
  readonly ids: readonly string[];
  readonly op:
    | { readonly type: 'ack' }
    | { readonly type: 'extend'; readonly extendMs: number }
    | {
        readonly type: 'nack';
        readonly error: string;
        readonly delayMs: number;
        readonly release: boolean;
        readonly deadLetter: boolean;
      };
}

/** The errors of the messages that were not settled, by id. */
export type Failures = ReadonlyMap<string, FilaError>;

const NONE: Failures = new Map();

class Settle extends Pending<Failures> {
  constructor(
    readonly settlement: Settlement,
    timeoutMs: number,
    signal?: AbortSignal,
  ) {
    super(timeoutMs, signal);
  }
}

const nameOf = (queue: string, id: string): string => `${queue}\n${id}`;

/** Merges settlements into requests, and splits the answers, which name only the failures. */
export class SettleCodec implements Codec<Settle> {
  /** A settlement names its lease. */
  readonly repeatableMs = Infinity;
  #sequence = 0;

  make(waiting: Deque<Settle>): Batch<Settle> | undefined {
    const items: Settle[] = [];
    // An answer names a message by queue and id. So no batch has the same message twice.
    const named = new Set<string>();
    for (let item = waiting.peek(); item !== undefined; item = waiting.peek()) {
      if (!item.done) {
        const { queue, ids } = item.settlement;
        const names = ids.map((id) => nameOf(queue, id));
        const full = named.size + names.length > MAX_BATCH_IDS || names.some((name) => named.has(name));
        if (items.length > 0 && full) break;
        for (const name of names) named.add(name);
        items.push(item);
      }
      waiting.shift();
    }
    if (items.length === 0) return undefined;
    const sequence = ++this.#sequence;
    return { data: encode(items, sequence), items, sequence };
  }

  answer(
    batch: Batch<Settle>,
    data: Buffer,
    refuse: (item: Settle, error: FilaError) => void,
  ): FilaError | undefined {
    const response = SettleResponse.decode(data);
    if (response.sequence !== batch.sequence) {
      throw new InternalError(`the answer to batch ${batch.sequence} names batch ${response.sequence}`);
    }
    if (response.error !== undefined) return fromWire(response.error);
    if (response.failures.length === 0) {
      for (const item of batch.items) item.resolve(NONE);
      return undefined;
    }
    const failed = new Map<string, FilaError>();
    for (const { queue, messageId, error } of response.failures) {
      if (error === undefined) throw new InternalError('a failure without an error');
      failed.set(nameOf(queue, messageId), fromWire(error));
    }
    for (const item of batch.items) this.#split(item, failed, refuse);
    return undefined;
  }

  #split(
    item: Settle,
    failed: ReadonlyMap<string, FilaError>,
    refuse: (item: Settle, error: FilaError) => void,
  ): void {
    const { queue, ids, op } = item.settlement;
    const failures = new Map<string, FilaError>();
    for (const id of ids) {
      const error = failed.get(nameOf(queue, id));
      // An ack that is sent again and refused because the message is gone was carried out.
      const wasDone = item.unsure && op.type === 'ack' && error?.kind === 'MESSAGE_GONE';
      if (error !== undefined && !wasDone) failures.set(id, error);
    }
    const [only] = failures.values();
    if (only !== undefined && ids.length === 1) refuse(item, only);
    else item.resolve(failures);
  }
}

function encode(items: readonly Settle[], sequence: number): Buffer {
  const request: SettleRequest = { acks: [], nacks: [], extends: [], sequence };
  const acks = new Map<string, { queue: string; leaseId: string; messageIds: string[] }>();
  for (const { settlement } of items) {
    const { queue, leaseId, ids, op } = settlement;
    if (op.type === 'ack') {
      const lease = nameOf(queue, leaseId);
      const group = acks.get(lease);
      if (group === undefined) acks.set(lease, { queue, leaseId, messageIds: [...ids] });
      else group.messageIds.push(...ids);
    } else if (op.type === 'extend') {
      request.extends.push({ queue, leaseId, messageIds: [...ids], extendMs: op.extendMs });
    } else {
      const error = op.error.slice(0, MAX_ERROR);
      for (const messageId of ids) request.nacks.push({ ...op, error, queue, leaseId, messageId });
    }
  }
  request.acks.push(...acks.values());
  return Buffer.from(SettleRequest.encode(request).finish());
}

/** What cannot be encoded would fail the whole batch, long after the call. */
function check({ queue, leaseId, ids, op }: Settlement): void {
  text(queue, 'the queue');
  text(leaseId, 'leaseId');
  for (const id of ids) text(id, 'the id of the message');
  if (op.type === 'extend') whole(op.extendMs, 'extendMs');
  if (op.type !== 'nack') return;
  text(op.error, 'the error');
  whole(op.delayMs, 'delayMs');
}

/** Acks, nacks and extensions: those of one turn of the event loop travel together. */
export class Settler {
  readonly #exchange: Exchange<Settle>;
  readonly #connection: Connection;
  readonly #inFlight: InFlight;

  constructor(connection: Connection, inFlight: InFlight) {
    this.#connection = connection;
    this.#inFlight = inFlight;
    this.#exchange = new Exchange(connection, FilaServiceService.settle.path, new SettleCodec());
  }

  /** Settles messages. Rejects when the only one was refused, or all. */
  settle(
    settlement: Settlement,
    { timeoutMs = this.#connection.timeoutMs, signal }: CallOptions = {},
  ): Promise<Failures> {
    check(settlement);
    const item = new Settle(settlement, timeoutMs, signal);
    const { queue, leaseId, ids, op } = settlement;
    if (op.type !== 'extend') this.#inFlight.forget(queue, leaseId, ids);
    this.#exchange.submit(item);
    return item.promise;
  }

  close(): void {
    this.#exchange.close();
  }
}
