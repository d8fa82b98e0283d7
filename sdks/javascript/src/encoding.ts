import { types } from 'node:util';

import { invalid, text, typeOf, whole } from './arguments.js';
import { MAX_RPC_BYTES } from './connection.js';
import { LimitExceededError } from './errors.js';

export type Headers = Readonly<Record<string, string>>;
export type Payload = Uint8Array | string;

export interface MessageOptions {
  /** The message is not delivered before this many milliseconds have passed. */
  delayMs?: number;
  /** 0 (most urgent) to 255. Orders messages inside one fairness key. */
  priority?: number;
  /** A second message with this key within the queue's dedup window is not enqueued. */
  dedupKey?: string;
}

/** Of a `Map` or an array the names would be others than were meant, or none. */
export function checkHeaders(headers: unknown): void {
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    throw invalid(`headers must be an object whose values are strings, not ${typeOf(headers)}`);
  }
}

const MAX_MESSAGE_BYTES = MAX_RPC_BYTES - 4096;

/**
 * Encodes an `EnqueueRequest` as an element of `EnqueueBatchRequest.messages`.
 *
 * The generated code is not used here: it takes five times as long, because it makes an array for every field. A test
 * checks that the bytes mean the same. The caller may change the payload afterwards.
 */
export function encodeMessage(
  queue: string,
  headers: Headers,
  payload: Payload,
  options: MessageOptions,
): Buffer {
  const names = Object.keys(headers);
  const entries: number[] = [];
  const queueBytes = utf8Length(queue, 'the queue');
  let size = queue === '' ? 0 : delimited(queueBytes);
  for (const name of names) {
    const [nameBytes, valueBytes] = [Buffer.byteLength(name), utf8Length(headers[name], `header ${name}`)];
    entries.push(nameBytes, valueBytes);
    size += delimited(delimited(nameBytes) + delimited(valueBytes));
  }
  const payloadBytes = payloadLength(payload);
  if (payloadBytes > 0) size += delimited(payloadBytes);
  const { delayMs = 0, priority, dedupKey = '' } = options;
  const dedupBytes = utf8Length(dedupKey, 'dedupKey');
  if (delayMs !== 0) size += 1 + varint(whole(delayMs, 'delayMs'));
  if (priority !== undefined) size += 1 + varint(whole(priority, 'priority', 0, 255));
  if (dedupKey !== '') size += delimited(dedupBytes);
  if (size > MAX_MESSAGE_BYTES) {
    const told = `the message has ${size} bytes; the limit is ${MAX_MESSAGE_BYTES}`;
    throw new LimitExceededError(told, { kind: 'PAYLOAD_TOO_LARGE' });
  }

  const out = Buffer.allocUnsafe(delimited(size));
  let at = head(out, 0, 0x0a, size);
  if (queue !== '') at += out.write(queue, head(out, at, 0x0a, queueBytes)) + 1 + varint(queueBytes);
  for (let i = 0; i < names.length; i++) {
    const [name, nameBytes, valueBytes] = [
      names[i] as string,
      entries[2 * i] as number,
      entries[2 * i + 1] as number,
    ];
    at = head(out, at, 0x12, delimited(nameBytes) + delimited(valueBytes));
    at = head(out, at, 0x0a, nameBytes);
    at += out.write(name, at);
    at = head(out, at, 0x12, valueBytes);
    at += out.write(headers[name] as string, at);
  }
  if (payloadBytes > 0) {
    at = head(out, at, 0x1a, payloadBytes);
    if (typeof payload === 'string') out.write(payload, at);
    else out.set(payload, at);
    at += payloadBytes;
  }
  if (delayMs !== 0) at = head(out, at, 0x20, delayMs);
  if (priority !== undefined) at = head(out, at, 0x28, priority);
  if (dedupKey !== '') out.write(dedupKey, head(out, at, 0x32, dedupBytes));
  return out;
}

/** What ends a batch: the producer's id (field 2) and the sequence of the batch (field 3). */
export function encodeTail(producerId: string, sequence: number): Buffer {
  const bytes = Buffer.byteLength(producerId);
  const out = Buffer.allocUnsafe(delimited(bytes) + 1 + varint(sequence));
  const at = head(out, 0, 0x12, bytes);
  head(out, at + out.write(producerId, at), 0x18, sequence);
  return out;
}

function utf8Length(value: unknown, what: string): number {
  return Buffer.byteLength(text(value, what));
}

/** Of other values, such as an `ArrayBuffer` or an object, nothing or something else would be sent. */
function payloadLength(payload: unknown): number {
  if (typeof payload === 'string') return Buffer.byteLength(payload);
  if (types.isUint8Array(payload)) return payload.length;
  throw invalid(`the payload must be a string or a Uint8Array, not ${typeOf(payload)}`);
}

function varint(value: number): number {
  let bytes = 1;
  for (; value >= 128; value = Math.floor(value / 128)) bytes++;
  return bytes;
}

/** The size of a length-delimited field whose number is below 16. */
function delimited(length: number): number {
  return 1 + varint(length) + length;
}

/** Writes a tag and a number, and returns where it ends. */
function head(out: Buffer, at: number, tag: number, value: number): number {
  out[at++] = tag;
  for (; value >= 128; value = Math.floor(value / 128)) out[at++] = (value % 128) | 0x80;
  out[at++] = value;
  return at;
}
