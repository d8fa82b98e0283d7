import { onAbort } from './aborting.js';

/** Node.js fires a timer at once that is set for longer than this. */
const LONGEST_MS = 2 ** 31 - 1;

/** A wait that a timer can have. A longer one ends early, and is then set again. */
export function timerMs(ms: number): number {
  return Math.min(LONGEST_MS, Math.max(1, ms));
}

/** Milliseconds on a clock that nobody sets. */
export function now(): number {
  return performance.now();
}

/** Waits so long, or until one of the signals aborts. */
export function wait(ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      for (const leave of left) leave();
      resolve();
    };
    const timer = setTimeout(end, timerMs(ms));
    const left = signals.flatMap((signal) => (signal === undefined ? [] : [onAbort(signal, end)]));
  });
}
