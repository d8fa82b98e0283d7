import { onAbort } from './aborting.js';
import { checkCall } from './arguments.js';
import { abortedError, type FilaError } from './errors.js';
import { now } from './timer.js';

/** What a stream of batches needs to know of a request. */
export interface Request {
  readonly deadline: number;
  readonly done: boolean;
  sent: boolean;
  unsure: boolean;
  hops: number;
  retryAt: number;
  refusal: FilaError | undefined;
  reject(error: FilaError): void;
}

/** One caller's request that travels with others. */
export class Pending<T> implements Request {
  readonly promise: Promise<T>;
  /** As `now` counts. */
  readonly deadline: number;
  done = false;
  /** It was written to a stream. */
  sent = false;
  /** It was on a stream that broke, so the broker may have carried it out. */
  unsure = false;
  /** How many members in a row have named another one. */
  hops = 0;
  /** Not to be sent before. */
  retryAt = 0;
  /** Why the broker has refused it for now. It was not sent again since. */
  refusal: FilaError | undefined;
  #resolve!: (value: T) => void;
  #reject!: (error: FilaError) => void;
  #leave: (() => void) | undefined;
  /** Told once, whatever the outcome. */
  onDone: (() => void) | undefined;

  constructor(timeoutMs: number, signal?: AbortSignal) {
    checkCall({ timeoutMs, signal });
    this.deadline = now() + timeoutMs;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (signal === undefined) return;
    if (signal.aborted) this.reject(abortedError(signal));
    else this.#leave = onAbort(signal, () => this.reject(abortedError(signal)));
  }

  resolve(value: T): void {
    if (this.#finish()) this.#resolve(value);
  }

  reject(error: FilaError): void {
    if (this.#finish()) this.#reject(error);
  }

  #finish(): boolean {
    if (this.done) return false;
    this.done = true;
    this.#leave?.();
    this.onDone?.();
    return true;
  }
}
