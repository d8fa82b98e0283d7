import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Client, EnqueueManyError, MessageNotFoundError, QueueNotFoundError } from '../../src/index.js';
import { Server } from '../support/server.js';

let server: Server;
let client: Client;
before(async () => {
  server = await Server.start();
  client = new Client(server.address, { openTelemetry: false });
});
after(async () => {
  await client.close();
  await server.stop();
});

test('a message is enqueued, delivered with all its fields, acked and gone', async () => {
  await client.createQueue('whole', { fairnessHeader: 'tenant' });
  const id = await client.enqueue('whole', { tenant: 'acme', größe: '🦊' }, Buffer.from([0, 255, 128]));
  await using consumer = client.consume('whole');
  const [message] = await consumer.take(1);
  assert.ok(message);
  assert.equal(message.id, id);
  assert.equal(message.queue, 'whole');
  assert.deepEqual({ ...message.headers }, { tenant: 'acme', größe: '🦊' });
  assert.deepEqual([...message.payload], [0, 255, 128]);
  assert.equal(message.fairnessKey, 'acme');
  assert.equal(message.attemptCount, 0);
  assert.notEqual(message.leaseId, '');
  assert.ok(message.enqueuedAt instanceof Date);
  await message.ack();
  const { summary } = await client.queueStats('whole');
  assert.deepEqual([summary.depth, summary.inFlight], [0, 0]);
});

test('headers are whatever text they are, by whatever names', async () => {
  await client.createQueue('names');
  const names = ['__proto__', 'constructor', 'toString', 'a'];
  const headers = Object.fromEntries(names.map((name) => [name, `value of ${name}`]));
  await client.enqueue('names', headers);
  const [seen] = (await client.peek('names')).messages;
  assert.deepEqual(Object.entries(seen?.headers ?? {}).sort(), Object.entries(headers).sort());
  await using consumer = client.consume('names');
  const [message] = await consumer.take(1);
  assert.deepEqual(Object.entries(message?.headers ?? {}).sort(), Object.entries(headers).sort());
  assert.equal(Object.getPrototypeOf(message?.headers), Object.prototype);
  await message?.ack();
});

test('a loop over a consumer ends when it is left, and what it was not handed costs no attempt', async () => {
  await client.createQueue('loop', { maxAttempts: 1 });
  await client.enqueueMany(
    'loop',
    Array.from({ length: 20 }, (_, n) => ({ payload: String(n) })),
  );
  const seen: string[] = [];
  for await (const message of client.consume('loop')) {
    seen.push(message.payload.toString());
    await message.ack();
    if (seen.length === 5) break;
  }
  assert.deepEqual(seen, ['0', '1', '2', '3', '4']);
  await using others = client.consume('loop');
  const rest = await others.take(15);
  assert.deepEqual(
    rest.map((message) => [message.payload.toString(), message.attemptCount]),
    Array.from({ length: 15 }, (_, n) => [String(n + 5), 0]),
  );
  const dead = await client.queueStats('loop.dlq');
  assert.equal(dead.summary.depth, 0);
});

test('nack counts an attempt, release does not, reject makes a dead letter, redrive brings it back', async () => {
  await client.createQueue('settle', { maxAttempts: 5 });
  const id = await client.enqueue('settle', {}, 'x');
  await using consumer = client.consume('settle');
  const next = async () => {
    const [message] = await consumer.take(1);
    assert.ok(message);
    assert.equal(message.id, id);
    return message;
  };
  await (await next()).nack('first');
  const second = await next();
  assert.equal(second.attemptCount, 1);
  await second.release();
  const third = await next();
  assert.equal(third.attemptCount, 1);
  await third.extend(60_000);
  await third.reject('cannot be read');
  const { messages } = await client.peek('settle.dlq', { payloadBytes: 10 });
  assert.deepEqual(
    messages.map((each) => [
      each.id,
      each.payload.toString(),
      each.deadLetter?.reason,
      each.deadLetter?.sourceQueue,
    ]),
    [[id, 'x', 'rejected', 'settle']],
  );
  assert.equal(await client.redrive('settle.dlq'), 1);
  await (await next()).ack();
});

test('messages are settled by queue and id, as the specification has it', async () => {
  await client.createQueue('by-id', { maxAttempts: 5 });
  const id = await client.enqueue('by-id');
  await using consumer = client.consume('by-id');
  await consumer.take(1);
  await client.nack('by-id', id, 'again');
  const [again] = await consumer.take(1);
  assert.equal(again?.attemptCount, 1);
  await client.extend('by-id', id, 10_000);
  await client.ack('by-id', id);
  await assert.rejects(client.ack('by-id', id), MessageNotFoundError);
  await assert.rejects(client.reject('by-id', id), MessageNotFoundError);
  await assert.rejects(client.release('by-id', id), MessageNotFoundError);
});

test('an ack under a lease that has ended is refused and does not touch the next holder', async () => {
  await client.createQueue('late', { visibilityTimeoutMs: 1000, maxAttempts: 5 });
  await client.enqueue('late');
  await using slow = client.consume('late', { autoExtend: false });
  const [first] = await slow.take(1);
  const [second] = await slow.take(1, { timeoutMs: 10_000 });
  assert.equal(second?.attemptCount, 1);
  await assert.rejects(first?.ack() ?? Promise.resolve(), {
    name: 'MessageNotFoundError',
    kind: 'LEASE_ENDED',
  });
  await second.ack();
});

test('leases of held messages are extended, also after a graceful stop', async () => {
  await client.createQueue('held', { visibilityTimeoutMs: 1000, maxAttempts: 1 });
  await client.enqueueMany('held', [{ payload: 'a' }, { payload: 'b' }]);
  const consumer = client.consume('held');
  const held = await consumer.take(2);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await consumer.stop();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await Promise.all(held.map((message) => message.ack()));
  const { summary } = await client.queueStats('held.dlq');
  assert.equal(summary.depth, 0);
});

test('stopping gives back what was never handed, at once and without an attempt', async () => {
  await client.createQueue('stop', { maxAttempts: 1 });
  await client.enqueueMany(
    'stop',
    Array.from({ length: 10 }, () => ({})),
  );
  const stop = new AbortController();
  const consumer = client.consume('stop', { maxInFlight: 10, signal: stop.signal });
  const [message] = await consumer.take(1);
  stop.abort();
  assert.deepEqual(await consumer.next(), { done: true, value: undefined });
  await consumer.stop();
  const { summary } = await client.queueStats('stop');
  assert.deepEqual([summary.depth, summary.inFlight], [9, 1]);
  await message?.ack();
  await using others = client.consume('stop');
  const rest = await others.take(9);
  assert.deepEqual(new Set(rest.map((each) => each.attemptCount)), new Set([0]));
});

test('no more messages are delivered than the credit, which can change', async () => {
  await client.createQueue('credit');
  await client.enqueueMany(
    'credit',
    Array.from({ length: 10 }, () => ({})),
  );
  await using consumer = client.consume('credit', { maxInFlight: 3 });
  assert.equal((await consumer.take(10, { timeoutMs: 400 })).length, 3);
  consumer.setMaxInFlight(5);
  assert.equal((await consumer.take(10, { timeoutMs: 400 })).length, 2);
});

test('many messages: a result for each, in order', async () => {
  await client.createQueue('many');
  async function* source() {
    for (let n = 0; n < 2500; n++) yield await Promise.resolve({ payload: String(n) });
  }
  const enqueued = await client.enqueueMany('many', source());
  assert.equal(new Set(enqueued.map((each) => each.id)).size, 2500);
  const { messages } = await client.peek('many', { limit: 1000 });
  assert.deepEqual(
    messages.map((each) => each.id),
    enqueued.slice(0, 1000).map((each) => each.id),
  );
  const refused = client.enqueueMany('nowhere', [{}, {}]);
  await assert.rejects(refused, (error: EnqueueManyError) => {
    assert.ok(error instanceof EnqueueManyError);
    assert.equal(error.results.length, 2);
    assert.ok(error.results.every((each) => each.error instanceof QueueNotFoundError));
    return true;
  });
});

test('more bytes than the buffer holds wait for room', async () => {
  await using small = new Client(server.address, { maxBufferBytes: 100_000, openTelemetry: false });
  await small.createQueue('bounded');
  const payload = Buffer.alloc(30_000);
  const ids = await Promise.all(Array.from({ length: 50 }, () => small.enqueue('bounded', {}, payload)));
  assert.equal(new Set(ids).size, 50);
});

test('a second message with a dedup key is told as a duplicate', async () => {
  await client.createQueue('dedup');
  const first = await client.enqueueMessage('dedup', { dedupKey: 'one' });
  const second = await client.enqueueMessage('dedup', { dedupKey: 'one' });
  assert.deepEqual([first.duplicate, second.duplicate, second.id], [false, true, first.id]);
});
