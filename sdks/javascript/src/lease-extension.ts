import { MessageNotFoundError } from './errors.js';
import type { Due, InFlight } from './in-flight.js';
import type { Settler } from './settler.js';
import { timerMs } from './timer.js';

/** How often a lease is extended within the queue's visibility timeout. */
const TIMES = 3;
/** Messages of one extension, well below what a request may have. */
const AT_ONCE = 1000;

/** Whose leases are extended. */
export interface Holder {
  /** No lease is extended any more. */
  leasesClosed(): void;
  /** Gives prefetched messages to others, until the application asks again. */
  pause(): void;
}

/** Extends the leases of what a consumer has prefetched, and of what its application holds. */
export class LeaseExtension {
  readonly #holder: Holder;
  readonly #inFlight: InFlight;
  readonly #settler: Settler;
  readonly #idle: () => boolean;
  #every = 0;
  #timer: NodeJS.Timeout | undefined;
  #unasked = 0;
  #finishing = false;
  #closed = false;

  /** `idle` says whether the application has not asked for messages since it was called last. */
  constructor(holder: Holder, inFlight: InFlight, settler: Settler, idle: () => boolean) {
    this.#holder = holder;
    this.#inFlight = inFlight;
    this.#settler = settler;
    this.#idle = idle;
  }

  setVisibility(timeoutMs: number): void {
    const every = timerMs(timeoutMs / TIMES);
    if (this.#closed || every === this.#every) return;
    this.#every = every;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#turn, every);
  }

  /** The consumer has stopped: go on until all that is held is settled. */
  finish(): void {
    this.#finishing = true;
    if (!this.#inFlight.holds(this.#holder)) this.close();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#inFlight.forgetOwner(this.#holder);
    this.#holder.leasesClosed();
  }

  readonly #turn = (): void => {
    if (this.#finishing && !this.#inFlight.holds(this.#holder)) {
      this.close();
      return;
    }
    this.#timer = setTimeout(this.#turn, this.#every);
    this.#unasked = !this.#finishing && this.#idle() ? this.#unasked + 1 : 0;
    if (this.#unasked >= TIMES) this.#holder.pause();
    for (const { ids, ...lease } of this.#inFlight.due(this.#holder)) {
      for (let at = 0; at < ids.length; at += AT_ONCE)
        void this.#extend({ ...lease, ids: ids.slice(at, at + AT_ONCE) });
    }
  };

  async #extend({ queue, leaseId, ids }: Due): Promise<void> {
    try {
      const op = { type: 'extend', extendMs: 0 } as const;
      // It is of no use later than the next one.
      const failures = await this.#settler.settle({ queue, leaseId, ids, op }, { timeoutMs: this.#every });
      const gone = [...failures]
        .filter(([, error]) => error instanceof MessageNotFoundError)
        .map(([id]) => id);
      this.#inFlight.forget(queue, leaseId, gone);
    } catch (error) {
      // Anything else passes: the next turn tries again.
      if (error instanceof MessageNotFoundError) this.#inFlight.forget(queue, leaseId, ids);
    }
  }
}
