import type { FilaError } from './errors.js';
import type { Request } from './pending.js';

/** One request on a stream, for several callers. */
export interface Batch<I> {
  readonly data: Buffer;
  readonly items: readonly I[];
  readonly sequence: number;
  /** When it was first sent. */
  sentAt?: number;
  /** It was on a stream that broke, so the broker may have carried it out. */
  resent?: boolean;
}

/** Batches in flight. The broker remembers its last 64 answers to a producer. */
const WINDOW = 8;
/** While the last batch in flight is smaller than this, at most two are: what comes meanwhile travels as one batch. */
const SMALL_BYTES = 64 * 1024;
const SMALL_WINDOW = 2;

/**
 * Which batch goes onto the wire next. It knows no stream and no clock.
 *
 * - Batches leave in the order in which they were made, and are answered in that order.
 * - After a lost stream those in flight go first, the same bytes in the same order.
 * - One that may have been carried out is sent again alone. If the broker has no time for it, it has to come once more under
 *   its number, and that must happen before a higher number gets through.
 * - A batch that nobody waits for any more is not sent again, and its number is never used again. Neither is one that the
 *   broker may not know any more: its callers are told.
 * - A refusal that ends the stream is to be blamed on a batch only if that was alone. So batches are then sent one at a
 *   time, until one is refused alone.
 */
export class SendWindow<I extends Request> {
  #inFlight: Batch<I>[] = [];
  #resend: Batch<I>[] = [];
  #probing = false;

  get size(): number {
    return this.#inFlight.length + this.#resend.length;
  }

  items(): I[] {
    return [...this.#inFlight, ...this.#resend].flatMap((batch) => batch.items);
  }

  next(present: number, make: () => Batch<I> | undefined): Batch<I> | undefined {
    if (this.size === 0) this.#probing = false;
    if (this.#inFlight.length >= this.#room()) return undefined;
    const batch = this.#leftOver() ?? make();
    if (batch !== undefined) {
      batch.sentAt ??= present;
      this.#inFlight.push(batch);
    }
    return batch;
  }

  /** Ends the wait for the batches of earlier streams that were first sent before that. */
  endOlder(than: number, error: () => FilaError): void {
    for (const { items, sentAt = Infinity } of this.#resend) {
      if (sentAt < than) for (const item of items) item.reject(error());
    }
  }

  #room(): number {
    const last = this.#inFlight.at(-1);
    if (this.#probing || this.#resend.length > 0 || last?.resent) return 1;
    return last !== undefined && last.data.length < SMALL_BYTES ? SMALL_WINDOW : WINDOW;
  }

  #leftOver(): Batch<I> | undefined {
    let batch = this.#resend.shift();
    while (batch?.items.every((item) => item.done)) batch = this.#resend.shift();
    return batch;
  }

  /** The batch that the next answer belongs to. */
  answered(): Batch<I> | undefined {
    return this.#inFlight.shift();
  }

  /** Takes an answered batch back: it is to be sent again under its number. */
  again(batch: Batch<I>): void {
    this.#inFlight.unshift(batch);
  }

  lost(): void {
    for (const batch of this.#inFlight) {
      batch.resent = true;
      for (const item of batch.items) item.unsure = true;
    }
    this.#resend = [...this.#inFlight, ...this.#resend];
    this.#inFlight = [];
  }

  /** The broker ended the stream with an error. Returns the batch to blame, if that is certain. */
  refused(): Batch<I> | undefined {
    const blamed = this.#inFlight.length === 1 ? this.#inFlight.shift() : undefined;
    this.#probing ||= this.#inFlight.length > 0;
    this.lost();
    return blamed;
  }

  clear(): void {
    this.#inFlight = [];
    this.#resend = [];
  }
}
