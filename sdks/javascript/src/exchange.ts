import type { Metadata, ServiceError } from '@grpc/grpc-js';

import { Backoff } from './backoff.js';
import { type Connection, MAX_HOPS, type Peer, type RawStream } from './connection.js';
import { Deque } from './deque.js';
import {
  closedError,
  DeadlineExceededError,
  type FilaError,
  forgottenError,
  UnauthenticatedError,
  unexpectedAnswer,
} from './errors.js';
import type { Request } from './pending.js';
import { type Batch, SendWindow } from './send-window.js';
import { type Failure, failureOf } from './status.js';
import { now, timerMs } from './timer.js';

/** Deadlines are looked at no more often than this, so that timeouts under load cost little. */
const SWEEP_MS = 20;
/** A broker that asks for more before the next stream may be replaced by another one meanwhile. */
export const MOST_RETRY_AFTER_MS = 60_000;

/** Turns requests into batches, and the answer to a batch into an answer to each request. */
export interface Codec<I> {
  /** For so long after it was first sent, a batch whose answer was lost may be sent again. */
  readonly repeatableMs: number;
  /** Takes what fits into one batch. Skips requests that are done. */
  make(waiting: Deque<I>, address: string): Batch<I> | undefined;
  /**
   * Resolves the requests that were carried out, and calls `refuse` for the others. Returns why the batch as a whole was
   * refused: then it has answered nobody.
   */
  answer(
    batch: Batch<I>,
    response: Buffer,
    refuse: (item: I, error: FilaError) => void,
  ): FilaError | undefined;
}

/**
 * One stream of batches that are answered in order: opens it when there is work, writes, opens it again with backoff,
 * and gives requests up at their deadlines.
 *
 * Requests of one turn of the event loop travel together. What comes while the wire is busy travels in the next batch.
 */
export class Exchange<I extends Request> {
  readonly #connection: Connection;
  readonly #path: string;
  readonly #codec: Codec<I>;
  readonly #waiting = new Deque<I>();
  readonly #window = new SendWindow<I>();
  readonly #backoff = new Backoff();
  readonly #outside = new Set<I>();
  #later: I[] = [];
  #call: RawStream | undefined;
  #peer: Peer | undefined;
  #opening = false;
  #openAt = 0;
  #keyEnded = false;
  /** Why the broker has no time for a batch that may have been carried out. */
  #trouble = '';
  #scheduled: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #reopen: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connection: Connection, path: string, codec: Codec<I>) {
    this.#connection = connection;
    this.#path = path;
    this.#codec = codec;
  }

  submit(item: I): void {
    if (this.#closed) {
      item.reject(closedError());
      return;
    }
    if (item.done) return;
    this.#outside.delete(item);
    // Requests that are done would stay in memory for as long as the broker is away, or silent.
    this.#waiting.sieve((other) => !other.done);
    this.#waiting.push(item);
    this.#wakeAt(item.deadline);
    this.#scheduled ??= setImmediate(this.#flush);
  }

  /** Gives a request up at its deadline that is not submitted yet. */
  expire(item: I): void {
    this.#outside.add(item);
    this.#wakeAt(item.deadline);
  }

  /** The request was given up before it was submitted. */
  forget(item: I): void {
    this.#outside.delete(item);
  }

  close(): void {
    this.#closed = true;
    clearImmediate(this.#scheduled);
    clearTimeout(this.#timer);
    clearTimeout(this.#reopen);
    for (const item of this.#all()) item.reject(closedError());
    this.#window.clear();
    this.#waiting.clear();
    this.#later = [];
    this.#call?.cancel();
    this.#call = undefined;
  }

  #all(): I[] {
    return [...this.#window.items(), ...this.#waiting.toArray(), ...this.#later, ...this.#outside];
  }

  readonly #flush = (): void => {
    this.#scheduled = undefined;
    if (this.#closed) return;
    if (this.#call === undefined) {
      if (this.#window.size > 0 || this.#waiting.length > 0) this.#open();
      return;
    }
    const address = this.#peer?.address ?? '';
    // Batches that a former member may have are answered by that one. New ones are for the present one.
    const moved = address !== this.#connection.current;
    const make = (): Batch<I> | undefined => (moved ? undefined : this.#codec.make(this.#waiting, address));
    const present = now();
    this.#window.endOlder(present - this.#codec.repeatableMs, forgottenError);
    const next = (): Batch<I> | undefined => this.#window.next(present, make);
    for (let batch = next(); batch !== undefined; batch = next()) {
      for (const item of batch.items) {
        item.sent = true;
        item.refusal = undefined; // it says nothing about this sending
      }
      this.#call.write(batch.data);
    }
    if (moved && this.#window.size === 0) this.#restart();
  };

  #open(): void {
    if (this.#opening) return;
    const wait = this.#openAt - now();
    if (wait > 0) {
      this.#reopen ??= setTimeout(() => {
        this.#reopen = undefined;
        this.#flush();
      }, timerMs(wait));
      return;
    }
    this.#opening = true;
    this.#connection.ready().then(
      (peer) => {
        this.#opening = false;
        if (this.#closed) return;
        this.#serve(peer);
        this.#flush();
      },
      () => (this.#opening = false), // the client is closed, and so is this
    );
  }

  #serve(peer: Peer): void {
    let metadata: Metadata;
    try {
      metadata = this.#connection.metadata();
    } catch (error) {
      this.#failAll(error as FilaError); // there is no key where it should be
      return;
    }
    const call = peer.open(this.#path, metadata);
    this.#peer = peer;
    this.#call = call;
    call.on('data', (data: Buffer) => this.#answer(call, data));
    call.on('error', (error: ServiceError) => this.#end(call, failureOf(error)));
    call.on('status', () => this.#end(call, undefined));
  }

  #answer(call: RawStream, data: Buffer): void {
    if (this.#call !== call) return;
    const batch = this.#window.answered();
    this.#keyEnded = false;
    let refusal: FilaError | undefined;
    try {
      if (batch === undefined) throw new Error('no request waits for it');
      refusal = this.#codec.answer(batch, data, this.#refuse);
    } catch (cause) {
      const error = unexpectedAnswer(cause);
      for (const item of batch?.items ?? []) item.reject(error);
      this.#restart();
      return;
    }
    if (refusal?.retryable && batch.resent) {
      this.#putOff(call, batch, refusal);
      return;
    }
    this.#backoff.reset();
    this.#trouble = '';
    if (refusal !== undefined) for (const item of batch.items) this.#refuse(item, refusal);
    this.#flush();
  }

  /**
   * The broker has refused for now what may have been carried out before. It has not looked at the number, so the batch comes
   * again under it: under another one it would be carried out twice.
   */
  #putOff(call: RawStream, batch: Batch<I>, error: FilaError): void {
    this.#window.again(batch);
    this.#end(call, { error, refused: true, lost: true, owner: error.owner });
    this.#trouble = error.message;
    call.cancel();
  }

  /** What the broker refuses for now is sent again later. It has done nothing, so that is a new request. */
  readonly #refuse = (item: I, error: FilaError): void => {
    if (item.done) return;
    item.refusal = error;
    const follows = error.kind === 'NOT_OWNER' && this.#connection.follow(error.owner);
    const wait = follows ? 0 : Math.max(error.retryAfterMs, this.#backoff.nextMs());
    if (!error.retryable || now() + wait >= item.deadline || (follows && item.hops++ >= MAX_HOPS)) {
      item.reject(error);
      return;
    }
    item.retryAt = now() + wait;
    this.#later.push(item);
    this.#wakeAt(item.retryAt);
  };

  #restart(): void {
    const call = this.#call;
    this.#call = undefined;
    this.#window.lost();
    call?.cancel();
    this.#scheduled ??= setImmediate(this.#flush);
  }

  #end(call: RawStream, failure: Failure | undefined): void {
    if (this.#call !== call) return;
    this.#call = undefined;
    this.#trouble = '';
    const kind = failure?.error.kind;
    if (failure !== undefined && kind === 'NOT_OWNER' && this.#connection.follow(failure.owner)) {
      for (const item of this.#window.items()) if (item.hops++ >= MAX_HOPS) item.reject(failure.error);
    }
    if (kind === 'SHUTTING_DOWN' && this.#peer !== undefined) this.#connection.leave(this.#peer.address);
    const newKey = kind === 'KEY_ENDED' && !this.#keyEnded;
    this.#keyEnded ||= newKey;
    if (failure === undefined || failure.lost || newKey) {
      this.#window.lost();
    } else if (failure.error instanceof UnauthenticatedError) {
      this.#failAll(failure.error); // it is the caller who is refused, not a batch
    } else {
      for (const item of this.#window.refused()?.items ?? []) item.reject(failure.error);
    }
    const retryAfterMs = Math.min(failure?.error.retryAfterMs ?? 0, MOST_RETRY_AFTER_MS);
    this.#openAt = now() + Math.max(this.#backoff.nextMs(), retryAfterMs);
    this.#flush();
  }

  #wakeAt(at: number): void {
    if (at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(this.#sweep, timerMs(at - now()));
  }

  /** Gives up what is due, sends again what has waited, and comes back for the next. */
  readonly #sweep = (): void => {
    this.#timerAt = Infinity;
    const present = now();
    let next = Infinity;
    for (const item of this.#all()) {
      if (!item.done && item.deadline <= present) item.reject(this.#late(item));
      if (!item.done) next = Math.min(next, item.deadline);
    }
    const due = this.#later.filter((item) => !item.done && item.retryAt <= present);
    this.#later = this.#later.filter((item) => !item.done && item.retryAt > present);
    for (const item of this.#later) next = Math.min(next, item.retryAt);
    this.#waiting.unshiftAll(due);
    if (next < Infinity) this.#wakeAt(Math.max(next, present + SWEEP_MS));
    this.#flush();
  };

  #late(item: I): FilaError {
    if (item.refusal !== undefined) return item.refusal;
    if (!item.sent && !this.#connection.isReady) return this.#connection.unavailable();
    const trouble = this.#trouble || this.#connection.trouble;
    const text = 'no answer before the deadline' + (trouble === '' ? '' : ` (${trouble})`);
    return new DeadlineExceededError(text, { kind: 'DEADLINE_EXCEEDED', retryable: false });
  }

  #failAll(error: FilaError): void {
    for (const item of this.#all()) item.reject(error);
    this.#window.clear();
    this.#waiting.clear();
    this.#later = [];
  }
}
