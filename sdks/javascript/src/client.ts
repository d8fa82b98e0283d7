import { AdminCalls } from './admin.js';
import { invalid, time, typeOf, whole } from './arguments.js';
import { type CallOptions, Connection, isAddress } from './connection.js';
import { type ConsumeOptions, Consumer, type ConsumerContext } from './consumer.js';
import {
  channelCredentials,
  keySource,
  type KeyOptions,
  tlsOptions,
  type TlsOptions,
  warnOfPlaintext,
} from './credentials.js';
import { Deque } from './deque.js';
import { checkHeaders, encodeMessage, type Headers, type MessageOptions, type Payload } from './encoding.js';
import {
  abortedError,
  called,
  closedError,
  EnqueueManyError,
  type EnqueueResult,
  FilaError,
  InternalError,
} from './errors.js';
import { InFlight } from './in-flight.js';
import type { NackOptions } from './message.js';
import { type Enqueued, Producer } from './producer.js';
import { type Settlement, Settler } from './settler.js';
import { type OpenTelemetryApi, Tracing } from './tracing.js';

const DEFAULT_TIMEOUT_MS = 5000;
const DEFAULT_BUFFER_BYTES = 16 << 20;

export interface ClientOptions extends KeyOptions {
  /** How long a call may take, reconnects and retries included, unless the call says otherwise. */
  timeoutMs?: number;
  /** TLS with these files. true: with the CAs of Node.js. Absent: as $FILA_TLS, $FILA_TLS_CA and so on say. */
  tls?: TlsOptions | boolean;
  /** How many bytes of unanswered messages are kept. Beyond, `enqueue` waits for room. */
  maxBufferBytes?: number;
  /** The OpenTelemetry API to use. Absent: the package, if the program has it. false: none. */
  openTelemetry?: OpenTelemetryApi | false;
}

/** A message to enqueue. */
export interface OutgoingMessage extends MessageOptions {
  headers?: Headers;
  payload?: Payload;
}

export type EnqueueOptions = MessageOptions & CallOptions;

/** The lease of a message that is settled by its id. Without it, whichever lease the message is held under. */
export interface LeaseOptions {
  leaseId?: string;
}

/**
 * A client of a Fila broker, or of a cluster. It connects by itself when it is used, and again after a loss.
 *
 * ```ts
 * await using client = new Client('localhost:5555');
 * await client.enqueue('orders', { tenant: 'acme' }, 'hello');
 * for await (const message of client.consume('orders')) await message.ack();
 * ```
 *
 * `addresses` is an address, or several: a list, or "a:5555,b:5555". The first that answers is used.
 */
export class Client extends AdminCalls implements AsyncDisposable, Disposable {
  protected readonly connection: Connection;
  readonly #producer: Producer;
  readonly #settler: Settler;
  readonly #tracing: Tracing;
  readonly #context: ConsumerContext;

  constructor(addresses: string | readonly string[] = 'localhost:5555', options: ClientOptions = {}) {
    super();
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxBufferBytes = DEFAULT_BUFFER_BYTES } = options;
    const list = addressesOf(addresses);
    const tls = tlsOptions(options.tls);
    channelCredentials(tls); // files that cannot be read are told now
    const key = keySource(options);
    if (tls === undefined && key() !== undefined) warnOfPlaintext(list);
    this.connection = new Connection({
      addresses: list,
      timeoutMs: time(timeoutMs, 'timeoutMs'),
      tls,
      key,
    });
    const inFlight = new InFlight();
    this.#producer = new Producer(this.connection, whole(maxBufferBytes, 'maxBufferBytes'));
    this.#settler = new Settler(this.connection, inFlight);
    this.#tracing = new Tracing(options.openTelemetry);
    this.#context = {
      connection: this.connection,
      settler: this.#settler,
      inFlight,
      tracing: this.#tracing,
      consumers: new Set(),
    };
  }

  /**
   * Enqueues one message. Resolves to its id once the message is durable.
   *
   * Calls that run at the same time travel together. A message whose answer was lost is sent again, and enqueued once.
   */
  async enqueue(
    queue: string,
    headers: Headers = {},
    payload: Payload = '',
    options: EnqueueOptions = {},
  ): Promise<string> {
    return (await this.enqueueMessage(queue, { ...options, headers, payload }, options)).id;
  }

  /** As `enqueue`. The answer also says whether the message was a duplicate, by its `dedupKey`. */
  enqueueMessage(queue: string, message: OutgoingMessage, options: CallOptions = {}): Promise<Enqueued> {
    return called(() => this.#send(queue, message, options));
  }

  /**
   * Enqueues messages in order, in batches. Resolves to their ids once all are durable.
   *
   * Rejects with `EnqueueManyError`, which has a result for each message, if some were not enqueued. `timeoutMs` is for
   * each message by itself. `signal` also ends the reading of `messages`. When the promise is settled, nothing is on its
   * way any more.
   */
  async enqueueMany(
    queue: string,
    messages: Iterable<OutgoingMessage> | AsyncIterable<OutgoingMessage>,
    options: CallOptions = {},
  ): Promise<Enqueued[]> {
    const results: Promise<EnqueueResult>[] = [];
    const unanswered = new Deque<Promise<EnqueueResult>>();
    let ended: FilaError | undefined;
    try {
      for await (const message of iterable(messages)) {
        ended = this.#endOf(options);
        if (ended !== undefined) break;
        const result = this.#attempt(queue, message, options);
        results.push(result);
        unanswered.push(result);
        // An endless source is read only as fast as the broker answers.
        while (this.#producer.isFull && unanswered.length > 0) await unanswered.shift();
      }
    } finally {
      await Promise.all(results);
    }
    const all = await Promise.all(results);
    const enqueued = all.filter((each) => each.error === undefined);
    if (enqueued.length < all.length) throw new EnqueueManyError(all);
    if (ended !== undefined) throw ended;
    return enqueued;
  }

  /** Why no more messages are to be read. */
  #endOf({ signal }: CallOptions): FilaError | undefined {
    if (this.connection.closed) return closedError();
    return signal?.aborted ? abortedError(signal) : undefined;
  }

  async #attempt(queue: string, message: OutgoingMessage, options: CallOptions): Promise<EnqueueResult> {
    try {
      return await this.#send(queue, message, options);
    } catch (cause) {
      if (cause instanceof FilaError) return { error: cause };
      return { error: new InternalError(String(cause), { kind: 'INTERNAL', cause }) };
    }
  }

  #send(queue: string, message: OutgoingMessage, options: CallOptions): Promise<Enqueued> {
    if (typeof message !== 'object' || (message as unknown) === null) {
      throw invalid(`a message must be an object, not ${typeOf(message)}`);
    }
    const { headers = {}, payload = '' } = message;
    checkHeaders(headers);
    const frame = encodeMessage(queue, this.#tracing.inject(headers), payload, message);
    return this.#producer.send(frame, options);
  }

  /** The messages of a queue, as they are delivered: an async iterable that connects by itself, again and again. */
  consume(queue: string, options: ConsumeOptions = {}): Consumer {
    if (this.connection.closed) throw closedError();
    return new Consumer(this.#context, queue, options);
  }

  /** Removes a delivered message for good. */
  ack(queue: string, messageId: string, options: CallOptions & LeaseOptions = {}): Promise<void> {
    return this.#settle(queue, messageId, { type: 'ack' }, options);
  }

  /** A delivered message has failed: it is delivered again, or becomes a dead letter. */
  nack(
    queue: string,
    messageId: string,
    error = '',
    options: NackOptions & LeaseOptions = {},
  ): Promise<void> {
    const { delayMs = 0 } = options;
    return this.#settle(
      queue,
      messageId,
      { type: 'nack', error, delayMs, release: false, deadLetter: false },
      options,
    );
  }

  /** Gives a delivered message back without counting an attempt. */
  release(queue: string, messageId: string, options: NackOptions & LeaseOptions = {}): Promise<void> {
    const { delayMs = 0 } = options;
    return this.#settle(
      queue,
      messageId,
      { type: 'nack', error: '', delayMs, release: true, deadLetter: false },
      options,
    );
  }

  /** Moves a delivered message to the dead-letter queue. */
  reject(
    queue: string,
    messageId: string,
    error = '',
    options: CallOptions & LeaseOptions = {},
  ): Promise<void> {
    return this.#settle(
      queue,
      messageId,
      { type: 'nack', error, delayMs: 0, release: false, deadLetter: true },
      options,
    );
  }

  /** The lease of a delivered message ends `extendMs` from now; 0 means the queue's visibility timeout. */
  extend(
    queue: string,
    messageId: string,
    extendMs = 0,
    options: CallOptions & LeaseOptions = {},
  ): Promise<void> {
    return this.#settle(queue, messageId, { type: 'extend', extendMs }, options);
  }

  async #settle(
    queue: string,
    id: string,
    op: Settlement['op'],
    options: CallOptions & LeaseOptions,
  ): Promise<void> {
    const { leaseId = '' } = options;
    await called(() => this.#settler.settle({ queue, leaseId, ids: [id], op }, options));
  }

  /**
   * Ends everything at once: calls that wait reject with `ClientClosedError`, consumers end. The broker takes back what
   * consumers held. To finish first, stop the consumers and settle what they hold.
   */
  async close(): Promise<void> {
    this[Symbol.dispose]();
    // Sockets close in later turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }

  [Symbol.dispose](): void {
    for (const consumer of [...this.#context.consumers]) consumer.abort();
    this.#producer.close();
    this.#settler.close();
    this.connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function addressesOf(given: unknown): string[] {
  const parts: unknown[] =
    typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : [given];
  if (parts.length === 0) throw invalid('at least one address is needed');
  return parts.map((part) => {
    const address = typeof part === 'string' ? part.trim() : '';
    if (!isAddress(address)) {
      const shown = typeof part === 'string' ? JSON.stringify(part) : typeOf(part);
      throw invalid(`an address is host:port, not ${shown}`);
    }
    return address;
  });
}

function iterable<T>(messages: Iterable<T> | AsyncIterable<T>): Iterable<T> | AsyncIterable<T> {
  const given = Object(messages) as object;
  if (Symbol.asyncIterator in given || Symbol.iterator in given) return messages;
  throw invalid(`messages must be iterable, not ${typeOf(messages)}`);
}
