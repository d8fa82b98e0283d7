import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { EnqueueBatchRequest, SettleRequest } from '../../src/generated/fila/v1/service.js';
import { Client, EnqueueManyError, InvalidArgumentError, UnauthenticatedError } from '../../src/index.js';
import { answered, FakeBroker } from '../support/fake-broker.js';

// What programs without types may pass.
type Anything = never;
const any = (value: unknown): Anything => value as Anything;

const offline = (options = {}): Client =>
  new Client('127.0.0.1:1', { tls: false, openTelemetry: false, timeoutMs: 60_000, ...options });
const INVALID = { name: 'InvalidArgumentError', kind: 'INVALID_ARGUMENT' };

test('what is no payload is refused, and not sent as something else', async () => {
  await using client = offline();
  const wrong = [null, 5, true, { id: 1 }, [1, 2], new ArrayBuffer(4), new Uint16Array([300]), new Date(0)];
  for (const payload of wrong) {
    await assert.rejects(client.enqueue('q', {}, any(payload)), INVALID, typeof payload);
    await assert.rejects(client.enqueueMessage('q', any({ payload })), INVALID);
  }
});

test('what are no headers is refused, and not sent as others', async () => {
  await using client = offline();
  const wrong = [
    null,
    'a=b',
    5,
    new Map([['a', 'b']]),
    [['a', 'b']],
    { a: 1 },
    { a: null },
    { a: undefined },
  ];
  for (const headers of wrong) await assert.rejects(client.enqueue('q', any(headers)), INVALID);
});

test('names, ids, numbers and texts are checked before anything is sent', async () => {
  await using client = offline();
  const calls = [
    () => client.enqueue(any(undefined)),
    () => client.enqueue('q', {}, '', { delayMs: -1 }),
    () => client.enqueue('q', {}, '', { delayMs: 1.5 }),
    () => client.enqueue('q', {}, '', { priority: 256 }),
    () => client.enqueue('q', {}, '', { dedupKey: any(7) }),
    () => client.enqueueMessage('q', any(null)),
    () => client.enqueueMany('q', any(null)),
    () => client.ack(any(undefined), 'id'),
    () => client.ack('q', any(undefined)),
    () => client.ack('q', 'id', { leaseId: any(null) }),
    () => client.nack('q', 'id', any(new Error('why'))),
    () => client.nack('q', 'id', 'why', { delayMs: NaN }),
    () => client.release('q', 'id', { delayMs: -1 }),
    () => client.reject('q', 'id', any(null)),
    () => client.extend('q', 'id', -1),
    () => client.extend('q', 'id', 0.5),
    () => client.createQueue(any(undefined)),
    () => client.createQueue(any(null)),
    () => client.createQueue('q', { maxAttempts: -1 }),
    () => client.createQueue('q', any({ visibilityTimeout: 1000 })),
    () => client.createQueue('q', { throttleHeaders: any('provider') }),
    () => client.updateQueue('q', { overflow: any('explode') }),
    () => client.deleteQueue(any(5)),
    () => client.queueStats('q', { maxKeys: -1 }),
    () => client.setConfig('key', any(5)),
    () => client.setThrottle(any(null), { rate: 1 }),
    () => client.peek('q', { limit: -1 }),
    () => client.purge('q.dlq', { count: 0 }),
    () => client.purge('q.dlq', { count: any('5') }),
    () => client.purge('q.dlq', any({ fairness_key: 'acme' })),
    () => client.purge('q.dlq', { headers: any(new Map([['a', 'b']])) }),
    () => client.redrive('q.dlq', { states: any('ready') }),
    () => client.redrive('q.dlq', { messageIds: any([undefined]) }),
    () => client.describe({ timeoutMs: any('100') }),
    () => client.describe({ timeoutMs: NaN }),
    () => client.enqueue('q', {}, '', { timeoutMs: any('100') }),
    () => client.enqueue('q', {}, '', { timeoutMs: -1 }),
    () => client.ack('q', 'id', { signal: any(null) }),
    () => client.describe({ signal: any({}) }),
  ];
  for (const call of calls) await assert.rejects(call, INVALID, call.toString());
});

test('settings of a client that cannot work are told when it is made', () => {
  const wrong = [
    () => offline({ timeoutMs: '5000' }),
    () => offline({ timeoutMs: NaN }),
    () => offline({ maxBufferBytes: -1 }),
    () => offline({ tls: { ca: '/nowhere/ca.pem' } }),
    () => offline({ apiKey: 5 }),
    ...[5, null, [5], 'localhost', 'localhost:0', 'localhost:65536', 'unix:/a:1', 'a:1,', 'a b:1', []].map(
      (addresses) => () => new Client(any(addresses)),
    ),
  ];
  for (const make of wrong) assert.throws(make, InvalidArgumentError, make.toString());
});

test('a settlement that cannot be sent does not spoil others of the same turn', async () => {
  using broker = await FakeBroker.start({
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => call.write({ sequence, failures: [] })),
  });
  await using client = new Client(broker.address, { tls: false, openTelemetry: false });
  const [good, bad] = await Promise.allSettled([client.ack('q', 'one'), client.extend('q', 'two', 1.5)]);
  assert.deepEqual([good.status, bad.status], ['fulfilled', 'rejected']);
});

test('a text of any length goes with a nack, as much of it as the broker keeps', async () => {
  const texts: string[] = [];
  using broker = await FakeBroker.start({
    settle: (call) =>
      call.on('data', ({ sequence, nacks }: SettleRequest) => {
        texts.push(...nacks.map((nack) => nack.error));
        call.write({ sequence, failures: [] });
      }),
  });
  await using client = new Client(broker.address, { tls: false, openTelemetry: false });
  await Promise.all(['short', 'x'.repeat(20 << 20)].map((text, n) => client.nack('q', String(n), text)));
  assert.deepEqual(texts, ['short', 'x'.repeat(1024)]);
});

test('an empty list of ids selects no message', async () => {
  const filters: unknown[] = [];
  using broker = await FakeBroker.start({
    unary: {
      purge: ({ request }) => {
        filters.push((request.filter as { messageIds: string[] }).messageIds);
        return { answer: { purged: 0, cursor: '' } };
      },
    },
  });
  await using client = new Client(broker.address, { tls: false, openTelemetry: false });
  for (const messageIds of [[], ['a'], undefined]) await client.purge('q.dlq', { messageIds });
  assert.deepEqual(filters, [[''], ['a'], []]);
});

test('a call may wait as long as it likes', async () => {
  using broker = await FakeBroker.start({
    unary: { describe: () => ({ answer: { version: '1.2.3' } }) },
  });
  await using client = new Client(broker.address, { tls: false, openTelemetry: false, timeoutMs: Infinity });
  for (const timeoutMs of [undefined, Infinity, 2 ** 31, 1e15]) {
    assert.equal((await client.describe({ timeoutMs })).version, '1.2.3');
  }
});

test('a message is taken as it is when it is enqueued, also the first one of a client', async () => {
  const seen: string[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        seen.push(...request.messages.map((message) => message.payload.toString()));
        call.write(answered(request));
      }),
  });
  await using client = new Client(broker.address, { tls: false }); // and OpenTelemetry, if it is there
  const payload = Buffer.from('before');
  const sent = client.enqueue('q', {}, payload);
  payload.write('after!');
  await sent;
  assert.deepEqual(seen, ['before']);
});

test('of many messages, each that cannot be sent has its own error', async () => {
  using broker = await FakeBroker.start({
    enqueueStream: (call) => call.on('data', (request: EnqueueBatchRequest) => call.write(answered(request))),
  });
  await using client = new Client(broker.address, { tls: false, openTelemetry: false });
  async function* source() {
    yield any({ payload: null });
    await new Promise((resolve) => setImmediate(resolve)); // an error that nobody handles would be found here
    yield { payload: 'good' };
    yield any(7);
  }
  await assert.rejects(client.enqueueMany('q', source()), (error: EnqueueManyError) => {
    assert.ok(error instanceof EnqueueManyError);
    assert.deepEqual(
      error.results.map((result) => result.error?.kind),
      ['INVALID_ARGUMENT', undefined, 'INVALID_ARGUMENT'],
    );
    return true;
  });
});

test('a function that has no key is told as such, with the reason, whatever is called', async () => {
  using broker = await FakeBroker.start({
    unary: { describe: () => ({ answer: {} }) },
  });
  const cause = new Error('the vault is closed');
  let isOpen = true;
  const apiKey = (): string => {
    if (isOpen) return 'key';
    throw cause;
  };
  await using client = new Client(broker.address, { tls: false, openTelemetry: false, apiKey });
  await client.describe();
  isOpen = false;
  const calls = [() => client.describe(), () => client.enqueue('q'), () => client.consume('q').next()];
  for (const call of calls) {
    await assert.rejects(call, (error: UnauthenticatedError) => {
      assert.ok(error instanceof UnauthenticatedError);
      assert.match(error.message, /the vault is closed/);
      assert.equal(error.cause, cause);
      return true;
    });
  }
});
