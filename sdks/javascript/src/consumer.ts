import { onAbort } from './aborting.js';
import { checkCall, text, whole } from './arguments.js';
import { Backoff } from './backoff.js';
import { type CallOptions, type Connection, MAX_HOPS } from './connection.js';
import { ConsumeStream } from './consume-stream.js';
import { Deque } from './deque.js';
import { called, FilaError, InternalError } from './errors.js';
import { MOST_RETRY_AFTER_MS } from './exchange.js';
import type { Message } from './generated/fila/v1/messages.js';
import type { InFlight } from './in-flight.js';
import { LeaseExtension } from './lease-extension.js';
import { ConsumeMessage } from './message.js';
import type { Settler } from './settler.js';
import type { Failure } from './status.js';
import { now, timerMs } from './timer.js';
import type { Tracing } from './tracing.js';

export interface ConsumeOptions {
  /** The most messages that are prefetched or unsettled at any time. */
  maxInFlight?: number;
  /** Whether leases are extended while the messages are prefetched or held. */
  autoExtend?: boolean;
  /** Stops the consumer gracefully. */
  signal?: AbortSignal;
}

/** What a consumer needs of its client. */
export interface ConsumerContext {
  readonly connection: Connection;
  readonly settler: Settler;
  readonly inFlight: InFlight;
  readonly tracing: Tracing;
  /** Those that the client has to end when it is closed. */
  readonly consumers: Set<Consumer>;
}

/** A message that the application was not handed yet. */
interface Prefetched {
  readonly message: ConsumeMessage;
  /** On its stream, counted from 1. */
  readonly number: number;
  /** When its lease ends, if nothing extends it. */
  readonly until: number;
}

interface Waiter {
  /** It does not wait any more. */
  gone: boolean;
  give(message: ConsumeMessage | undefined): void;
  fail(error: FilaError): void;
}

const MOST_IN_FLIGHT = 2 ** 32 - 1;

/**
 * The messages of a queue, as they are delivered. It connects by itself, again and again.
 *
 * Leaving a `for await` loop, `stop` and `await using` stop it gracefully: messages that the application was never handed
 * go back without counting an attempt, and those that it holds can still be settled.
 */
export class Consumer implements AsyncIterableIterator<ConsumeMessage>, AsyncDisposable {
  readonly queue: string;
  readonly #context: ConsumerContext;
  readonly #leaveSignal: (() => void) | undefined;
  readonly #leases: LeaseExtension | undefined;
  readonly #buffer = new Deque<Prefetched>();
  readonly #waiters = new Deque<Waiter>();
  readonly #backoff = new Backoff();
  #maxInFlight: number;
  /** The queue's visibility timeout, if nothing extends leases. */
  #visibilityMs = Infinity;
  #stream: ConsumeStream | undefined;
  #retry: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #asked = true;
  #paused = false;
  #stopping = false;
  #error: FilaError | undefined;
  #hops = 0;
  #keyEnded = false;

  /** @internal */
  constructor(context: ConsumerContext, queue: string, options: ConsumeOptions) {
    const { maxInFlight = 100, autoExtend = true, signal } = options;
    checkCall({ signal });
    this.queue = text(queue, 'the queue');
    this.#context = context;
    this.#maxInFlight = whole(maxInFlight, 'maxInFlight', 0, MOST_IN_FLIGHT);
    if (autoExtend) {
      this.#leases = new LeaseExtension(this, context.inFlight, context.settler, this.#idle);
    }
    context.consumers.add(this);
    if (signal?.aborted) this.#stopping = true;
    else if (signal !== undefined) this.#leaveSignal = onAbort(signal, () => void this.stop());
    void this.#run();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next message. Several may wait at once. Rejects when the broker refuses the consumer. */
  async next(): Promise<IteratorResult<ConsumeMessage, undefined>> {
    const message = await called(() => this.#take(undefined));
    return message === undefined ? { done: true, value: undefined } : { done: false, value: message };
  }

  /** Waits until there are `count` messages, or the time is over, or the consumer has ended. */
  async take(
    count: number,
    { timeoutMs = this.#context.connection.timeoutMs, signal }: CallOptions = {},
  ): Promise<ConsumeMessage[]> {
    whole(count, 'count');
    checkCall({ timeoutMs, signal });
    const taken: ConsumeMessage[] = [];
    const over = new AbortController();
    const end = (): void => over.abort();
    const timer = setTimeout(end, timerMs(timeoutMs));
    const leave = signal === undefined ? undefined : onAbort(signal, end);
    if (signal?.aborted) end();
    try {
      while (taken.length < count) {
        const message = await called(() => this.#take(over.signal));
        if (message === undefined) break;
        taken.push(message);
        // Nothing follows a message that is delivered alone before it is settled.
        if (message.isolated) break;
      }
    } catch (error) {
      if (taken.length === 0) throw error; // else the next call tells
    } finally {
      clearTimeout(timer);
      leave?.();
    }
    return taken;
  }

  /** Changes how many messages are prefetched or unsettled at most. 0 holds delivery. */
  setMaxInFlight(maxInFlight: number): void {
    this.#maxInFlight = whole(maxInFlight, 'maxInFlight', 0, MOST_IN_FLIGHT);
    this.#stream?.setCredit(maxInFlight);
    this.#balance();
  }

  /** Stops gracefully. What the application holds keeps its lease until it is settled. */
  async stop(): Promise<void> {
    await this.#stop(true);
  }

  /** Leaving a loop. What it has not settled is delivered again when its lease ends. */
  async return(): Promise<IteratorResult<ConsumeMessage, undefined>> {
    await this.#stop(false);
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop(false);
  }

  async #stop(keepLeases: boolean): Promise<void> {
    this.#stopping = true;
    this.#finish();
    const stream = this.#stream;
    this.#dropPrefetched();
    if (!keepLeases) this.#leases?.close();
    else this.#leases?.finish();
    if (stream !== undefined) {
      stream.halfClose();
      await stream.ended;
    }
  }

  /** @internal The client is closed: everything ends at once. */
  abort(): void {
    this.#stopping = true;
    this.#leases?.close();
    this.#stream?.cancel();
    this.#buffer.clear();
    this.#finish();
  }

  #finish(): void {
    this.#leaveSignal?.();
    clearTimeout(this.#retry);
    this.#wake?.();
    for (const waiter of this.#waiters.clear()) this.#tellEnd(waiter);
    if (this.#leases === undefined) this.#context.consumers.delete(this);
  }

  #tellEnd(waiter: Waiter): void {
    if (this.#error !== undefined) waiter.fail(this.#error);
    else waiter.give(undefined);
  }

  async #run(): Promise<void> {
    const { connection } = this.#context;
    try {
      while (!this.#stopping) {
        const peer = await connection.ready();
        if (this.#isStopping()) break;
        const first = { queue: this.queue, maxInFlight: this.#maxInFlight };
        const stream = (this.#stream = new ConsumeStream(peer, connection.metadata(), first, {
          deliver: (messages, number) => this.#deliver(messages, number),
          visibility: (timeoutMs) => this.#accepted(timeoutMs),
        }));
        const failure = await stream.ended;
        this.#stream = undefined;
        if (this.#isStopping()) break;
        this.#giveBack();
        if (failure !== undefined && !this.#goesOn(failure, peer.address)) {
          this.#error = failure.error;
          break;
        }
        await this.#pauseBeforeRetry(failure);
      }
    } catch (error) {
      if (!connection.closed) {
        this.#error =
          error instanceof FilaError
            ? error
            : new InternalError(`the consumer failed: ${String(error)}`, { kind: 'INTERNAL', cause: error });
      }
    }
    if (this.#error !== undefined) this.#leases?.close();
    else this.#leases?.finish();
    this.#stopping = true;
    this.#finish();
  }

  // A method, since the flag changes while `#run` waits.
  #isStopping(): boolean {
    return this.#stopping;
  }

  #goesOn({ error, lost, owner }: Failure, address: string): boolean {
    const { connection } = this.#context;
    if (error.kind === 'NOT_OWNER' && connection.follow(owner)) return this.#hops++ < MAX_HOPS;
    if (error.kind === 'SHUTTING_DOWN') connection.leave(address);
    if (error.kind === 'KEY_ENDED' && !this.#keyEnded) return (this.#keyEnded = true);
    return lost;
  }

  async #pauseBeforeRetry(failure: Failure | undefined): Promise<void> {
    const retryAfterMs = Math.min(failure?.error.retryAfterMs ?? 0, MOST_RETRY_AFTER_MS);
    const wait = this.#paused ? undefined : Math.max(this.#backoff.nextMs(), retryAfterMs);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (wait !== undefined) this.#retry = setTimeout(resolve, wait);
    });
    this.#wake = undefined;
  }

  /** A broker that tells the visibility timeout has taken the consumer. */
  #accepted(visibilityTimeoutMs: number): void {
    this.#hops = 0;
    this.#keyEnded = false;
    if (this.#leases === undefined) this.#visibilityMs = visibilityTimeoutMs;
    else this.#leases.setVisibility(visibilityTimeoutMs);
  }

  #deliver(messages: readonly Message[], first: number): void {
    const { settler, tracing, inFlight } = this.#context;
    this.#backoff.reset();
    this.#dropEnded();
    const until = now() + this.#visibilityMs;
    messages.forEach((each, index) => {
      const message = new ConsumeMessage(this.queue, each, settler, tracing);
      if (this.#leases !== undefined) inFlight.add(this, this.queue, message.leaseId, message.id);
      this.#buffer.push({ message, number: first + index, until });
    });
    while (this.#buffer.length > 0) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) break;
      this.#hand(this.#buffer.shift() as Prefetched, waiter);
    }
    this.#balance();
  }

  /** Whether a prefetched message can be handed: its lease lives, as far as is known. */
  readonly #isHeld = ({ message, until }: Prefetched): boolean => {
    const { queue, leaseId, id } = message;
    if (this.#leases === undefined) return until > now();
    return this.#context.inFlight.has(queue, leaseId, id);
  };

  /** Reads no more while more is prefetched than was asked for. A broker that keeps to the credit is never held back. */
  #balance(): void {
    if (this.#buffer.length > this.#maxInFlight) this.#stream?.hold();
    else this.#stream?.flow();
  }

  /** Messages whose leases have ended come again, so the former ones are dropped. */
  #dropEnded(): void {
    for (
      let next = this.#buffer.peek();
      next !== undefined && !this.#isHeld(next);
      next = this.#buffer.peek()
    )
      this.#buffer.shift();
  }

  #hand({ message, number }: Prefetched, waiter: Waiter): void {
    const stream = this.#stream;
    if (!message.isolated || stream === undefined) {
      stream?.handed(number);
      waiter.give(message);
      return;
    }
    void stream.handedAlone(number).then((told) => {
      if (told && !waiter.gone) {
        waiter.give(message);
        return;
      }
      // Nobody has it. If the stream has ended, so has the lease, unless the broker has not noticed.
      void message.release().catch(() => undefined);
      if (waiter.gone) return;
      if (this.#stopping) this.#tellEnd(waiter);
      else this.#waiters.unshiftAll([waiter]);
    });
  }

  #take(signal: AbortSignal | undefined): Promise<ConsumeMessage | undefined> {
    this.#asked = true;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        waiter.gone = true;
        this.#waiters.remove(waiter);
        resolve(undefined);
      };
      const waiter: Waiter = {
        gone: false,
        give: (message) => {
          signal?.removeEventListener('abort', leave);
          resolve(message);
        },
        fail: (error) => {
          signal?.removeEventListener('abort', leave);
          reject(error);
        },
      };
      if (signal?.aborted) {
        resolve(undefined);
        return;
      }
      signal?.addEventListener('abort', leave);
      this.#dropEnded();
      const next = this.#buffer.shift();
      if (next !== undefined) this.#hand(next, waiter);
      else if (this.#error !== undefined || this.#stopping) this.#tellEnd(waiter);
      else {
        this.#waiters.push(waiter);
        this.#resume();
      }
      this.#balance();
    });
  }

  #dropPrefetched(): ConsumeMessage[] {
    const dropped = this.#buffer.clear().map(({ message }) => message);
    for (const { queue, leaseId, id } of dropped) this.#context.inFlight.forget(queue, leaseId, [id]);
    return dropped;
  }

  /** After a lost stream: the broker takes prefetched messages back, unless it has not noticed. */
  #giveBack(): void {
    for (const message of this.#dropPrefetched()) void message.release().catch(() => undefined);
  }

  /** Told at each turn of lease extension: prefetched messages that nobody asks for go to other consumers. */
  readonly #idle = (): boolean => {
    const asked = this.#asked || this.#waiters.length > 0;
    this.#asked = false;
    return !asked;
  };

  /** @internal */
  pause(): void {
    if (this.#stream === undefined || this.#paused) return;
    this.#paused = true;
    this.#dropPrefetched();
    this.#stream.halfClose();
  }

  /** @internal */
  leasesClosed(): void {
    this.#context.consumers.delete(this);
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#wake?.();
  }
}
