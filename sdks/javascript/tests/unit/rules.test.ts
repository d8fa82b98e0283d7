import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Metadata, type ServiceError } from '@grpc/grpc-js';

import { Backoff } from '../../src/backoff.js';
import { keySource, tlsOptions } from '../../src/credentials.js';
import { Deque } from '../../src/deque.js';
import { encodeMessage, encodeTail } from '../../src/encoding.js';
import { fromWire, InternalError, OverloadedError } from '../../src/errors.js';
import { ErrorKind } from '../../src/generated/fila/v1/errors.js';
import { EnqueueBatchRequest } from '../../src/generated/fila/v1/service.js';
import { InFlight } from '../../src/in-flight.js';
import { Pending } from '../../src/pending.js';
import { SendWindow } from '../../src/send-window.js';
import { failureOf } from '../../src/status.js';
import { timerMs } from '../../src/timer.js';
import { wireError } from '../support/fake-broker.js';

test('a batch is encoded as the generated code would', () => {
  const headers = { tenant: 'acme', größe: '🦊', empty: '', ['long'.repeat(100)]: 'v'.repeat(300) };
  const options = { delayMs: 2 ** 40 + 1, priority: 0, dedupKey: 'k' };
  const data = Buffer.concat([
    encodeMessage('orders', headers, Buffer.alloc(70_000, 7), options),
    encodeMessage('', {}, 'text', {}),
    encodeTail('producer', 2 ** 33 + 5),
  ]);
  const blank = {
    queue: '',
    headers: new Map(),
    payload: Buffer.from(''),
    delayMs: 0,
    priority: undefined,
    dedupKey: '',
  };
  assert.deepEqual(EnqueueBatchRequest.decode(data), {
    messages: [
      {
        queue: 'orders',
        headers: new Map(Object.entries(headers)),
        payload: Buffer.alloc(70_000, 7),
        ...options,
      },
      { ...blank, payload: Buffer.from('text') },
    ],
    producerId: 'producer',
    sequence: 2 ** 33 + 5,
    queue: '',
    producerEpoch: 0,
  });
});

test('every kind of the contract has an error of its own class and name', () => {
  const numbers = Object.values(ErrorKind).map(Number);
  const kinds: ErrorKind[] = numbers.filter((number) => number > 0);
  assert.ok(kinds.length > 30);
  for (const kind of kinds) {
    const error = fromWire(wireError(kind, { retryAfterMs: 7, owner: 'a:1' }));
    assert.equal(`ERROR_KIND_${error.kind}`, ErrorKind[kind]);
    assert.equal(error.name, error.constructor.name);
    assert.deepEqual([error.retryable, error.retryAfterMs, error.owner], [true, 7, 'a:1']);
  }
});

test('a kind of a later server goes by its status code and retryable', () => {
  const later = fromWire(wireError(4711 as ErrorKind, { code: 8 }));
  assert.ok(later instanceof OverloadedError);
  assert.deepEqual([later.kind, later.retryable], ['UNRECOGNIZED', true]);
  assert.ok(fromWire(wireError(4711 as ErrorKind, { code: 999 })) instanceof InternalError);
});

test('the transcript of the protocol is understood: an error at the end of a call', () => {
  const bytes =
    '08 05 12 1e 71 75 65 75 65 20 22 6e 6f 77 68 65 72 65 22 20 64 6f 65 73 20 6e 6f 74 20 65 78 69 73 74 1a 29 0a 21 ' +
    '74 79 70 65 2e 67 6f 6f 67 6c 65 61 70 69 73 2e 63 6f 6d 2f 66 69 6c 61 2e 76 31 2e 45 72 72 6f 72 12 04 08 05 18 06';
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(bytes.replaceAll(' ', ''), 'hex'));
  const { error, refused, lost } = failureOf(serviceError(5, 'queue "nowhere" does not exist', metadata));
  assert.deepEqual(
    [error.name, error.kind, error.message, refused, lost],
    ['QueueNotFoundError', 'QUEUE_NOT_FOUND', 'queue "nowhere" does not exist', true, false],
  );
});

test('a status without details is of the transport, whatever its words', () => {
  for (const [code, lost] of [
    [14, true],
    [1, true],
    [13, true],
    [2, true],
    [5, false],
    [16, false],
  ] as const) {
    const failure = failureOf(serviceError(code, 'queue not found', new Metadata()));
    assert.deepEqual([failure.refused, failure.lost], [false, lost], String(code));
  }
  const foreign = new Metadata();
  foreign.set('grpc-status-details-bin', Buffer.from([255, 255, 255]));
  assert.equal(failureOf(serviceError(14, 'x', foreign)).refused, false);
});

function serviceError(code: number, details: string, metadata: Metadata): ServiceError {
  return Object.assign(new Error(details), { code, details, metadata });
}

test('backoff doubles from 20 ms to 1 s, with jitter, and begins anew after an answer', () => {
  const backoff = new Backoff();
  for (const most of [20, 40, 80, 160, 320, 640, 1000, 1000]) {
    const wait = backoff.nextMs();
    assert.ok(wait >= most / 2 && wait <= most, `${wait} of ${most}`);
  }
  backoff.reset();
  assert.ok(backoff.nextMs() <= 20);
});

test('timers are never set for longer than Node.js can', () => {
  assert.deepEqual([timerMs(Infinity), timerMs(-5), timerMs(30)], [2 ** 31 - 1, 1, 30]);
});

const batchOf = (sequence: number, bytes = 10) => {
  const items = [new Pending<void>(1000)];
  for (const item of items) item.promise.catch(() => undefined);
  return { data: Buffer.alloc(bytes), items, sequence };
};

test('while batches are small two are in flight, and eight when they are large', () => {
  for (const [bytes, most] of [
    [10, 2],
    [100_000, 8],
  ] as const) {
    const window = new SendWindow<Pending<void>>();
    let made = 0;
    while (window.next(0, () => batchOf(++made, bytes)) !== undefined);
    assert.equal(made, most);
  }
});

test('a refusal that ends the stream is blamed on a batch that was alone', () => {
  const window = new SendWindow<Pending<void>>();
  const [one, two] = [batchOf(1), batchOf(2)];
  const source = [one, two];
  window.next(0, () => source.shift());
  window.next(0, () => source.shift());
  assert.equal(window.refused(), undefined);
  assert.equal(
    window.next(0, () => undefined),
    one,
  );
  assert.equal(
    window.next(0, () => batchOf(3)),
    undefined,
    'one at a time',
  );
  assert.equal(window.refused(), one);
  assert.equal(
    window.next(0, () => undefined),
    two,
  );
  assert.ok(two.items.every((item) => item.unsure));
});

test('what may have been carried out is sent again alone, and once more when it is put off', () => {
  const window = new SendWindow<Pending<void>>();
  const made = [batchOf(1), batchOf(2)];
  const [one, two] = made;
  const source = [...made];
  const next = () => window.next(0, () => source.shift() ?? batchOf(3));
  next();
  next();
  window.lost();
  for (const expected of [one, two]) {
    assert.equal(next(), expected);
    assert.equal(next(), undefined, 'it is alone');
    assert.equal(window.answered(), expected);
    window.again(expected as NonNullable<typeof expected>);
    window.lost();
    assert.equal(next(), expected);
    assert.equal(next(), undefined);
    assert.equal(window.answered(), expected);
  }
  assert.deepEqual([next()?.sequence, next()?.sequence], [3, 3], 'then as many as ever');
});

test('a lease is extended from its second turn on, until its messages are settled', () => {
  const inFlight = new InFlight();
  const owner = {};
  inFlight.add(owner, 'q', 'l', 'a');
  inFlight.add(owner, 'q', 'l', 'b');
  assert.deepEqual(inFlight.due(owner), []);
  inFlight.forget('q', '', ['a']);
  assert.deepEqual(inFlight.due(owner), [{ queue: 'q', leaseId: 'l', ids: ['b'] }]);
  inFlight.forget('q', 'l', ['b']);
  assert.equal(inFlight.holds(owner), false);
});

test('a deque keeps its order, wherever items come and go', () => {
  const deque = new Deque<number>();
  for (let n = 0; n < 500; n++) deque.push(n);
  for (let n = 0; n < 300; n++) assert.equal(deque.shift(), n);
  deque.remove(400);
  deque.remove(1);
  deque.unshiftAll([-2, -1]);
  assert.deepEqual([deque.length, deque.shift(), deque.peek()], [201, -2, -1]);
  assert.equal(deque.clear().includes(400), false);
  assert.equal(deque.shift(), undefined);
});

test('a deque drops what is of no use any more, once that is much', () => {
  const deque = new Deque<number>();
  for (let n = 0; n < 10_000; n++) {
    deque.sieve((item) => item % 10 === 0 || item >= 9999);
    deque.push(n);
    assert.ok(deque.length <= 1024 + n / 5, `${deque.length} of ${n}`);
  }
  const kept = deque.toArray();
  assert.deepEqual(
    kept.filter((item) => item % 10 === 0),
    Array.from({ length: 1000 }, (_, n) => n * 10),
  );
});

test('key and TLS come from the options, else from the environment', () => {
  const env = { FILA_API_KEY: 'from-env', FILA_TLS_CA: '/ca.pem' };
  assert.equal(keySource({ apiKey: 'given' }, env)(), 'given');
  assert.equal(keySource({}, env)(), 'from-env');
  assert.equal(keySource({}, {})(), undefined);
  assert.equal(tlsOptions(undefined, env)?.ca, '/ca.pem');
  assert.equal(tlsOptions(false, env), undefined);
  assert.deepEqual(tlsOptions(true, env), {});
  assert.equal(tlsOptions(undefined, { ...env, FILA_TLS: 'off' }), undefined);
  assert.throws(() => tlsOptions(undefined, { FILA_TLS: 'perhaps' }), { kind: 'INVALID_ARGUMENT' });
});
