import type { CallOptions } from './connection.js';
import { InvalidArgumentError } from './errors.js';

/** Checks of what a program passes, with errors that name it. */

export function invalid(why: string, cause?: unknown): InvalidArgumentError {
  return new InvalidArgumentError(why, { kind: 'INVALID_ARGUMENT', cause });
}

/** What a value is, for the text of an error: never the value itself, which may be large or secret. */
export function typeOf(value: unknown): string {
  return typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
}

export function text(value: unknown, what: string): string {
  if (typeof value !== 'string') throw invalid(`${what} must be a string, not ${typeOf(value)}`);
  return value;
}

export function whole(value: unknown, what: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    const given = typeof value === 'number' ? value : typeOf(value);
    throw invalid(`${what} must be a whole number from ${least} to ${most}, not ${given}`);
  }
  return value;
}

/** A time in milliseconds. Infinity means that it never ends. */
export function time(value: unknown, what: string): number {
  if (typeof value !== 'number' || !(value >= 0)) {
    const given = typeof value === 'number' ? value : typeOf(value);
    throw invalid(`${what} must be a number of milliseconds from 0 on, not ${given}`);
  }
  return value;
}

/** A copy of a list. A string is none: its letters would be taken for names. */
export function list<T>(value: readonly T[], what: string): T[] {
  if (!Array.isArray(value)) throw invalid(`${what} must be an array, not ${typeOf(value)}`);
  return [...(value as readonly T[])];
}

/** A name that is not known would be passed over, and the call would do something else than was meant. */
export function onlyNames(given: object, known: ReadonlySet<string>, what: string): void {
  const unknown = Object.keys(given).find((name) => !known.has(name));
  if (unknown !== undefined) throw invalid(`there is no ${what} ${JSON.stringify(unknown)}`);
}

export function checkCall({ timeoutMs, signal }: CallOptions): void {
  if (timeoutMs !== undefined) time(timeoutMs, 'timeoutMs');
  if (signal === undefined) return;
  const given = signal as Partial<AbortSignal> | null;
  if (typeof given?.addEventListener !== 'function' || typeof given.aborted !== 'boolean') {
    throw invalid(`signal must be an AbortSignal, not ${typeOf(signal)}`);
  }
}
