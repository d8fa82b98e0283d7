/** Who waits for one signal. */
interface Waiting {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const waiting = new WeakMap<AbortSignal, Waiting>();

/**
 * Calls back when a signal aborts. Returns what takes that back.
 *
 * A program may have one signal for all its calls, and Node.js warns of more than ten listeners. So all callbacks of a
 * signal share one listener. It is there for as long as there are callbacks.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, listener } = waiting.get(signal) ?? listenTo(signal);
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return;
    waiting.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function listenTo(signal: AbortSignal): Waiting {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    for (const callback of callbacks) callback();
  };
  signal.addEventListener('abort', listener);
  const made = { callbacks, listener };
  waiting.set(signal, made);
  return made;
}
