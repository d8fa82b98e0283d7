import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  CancelledError,
  Client,
  ClientClosedError,
  ConfigNotFoundError,
  DeadlineExceededError,
  InvalidArgumentError,
  LimitExceededError,
  QueueAlreadyExistsError,
  QueueFullError,
  QueueNotFoundError,
  UnavailableError,
} from '../../src/index.js';
import { eventually, freePort, Server } from '../support/server.js';

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server.stop());

const connected = (options = {}): Client => new Client(server.address, { openTelemetry: false, ...options });

test('the server is killed twice while 20 tasks produce: nothing is lost, and nothing is there twice', async () => {
  await using client = connected({ timeoutMs: 60_000 });
  await client.createQueue('killed');
  const COUNT = 6000;
  const ids: string[] = [];
  let next = 0;
  const produce = async (): Promise<void> => {
    while (next < COUNT) ids.push(await client.enqueue('killed', {}, String(next++)));
  };
  const producing = Promise.all(Array.from({ length: 20 }, produce));
  for (const share of [0.2, 0.6]) {
    await eventually(() => ids.length > COUNT * share, 30_000);
    await server.kill();
    await server.start();
  }
  await producing;
  assert.equal(new Set(ids).size, COUNT);
  const seen = new Set<string>();
  let deliveries = 0;
  for await (const message of client.consume('killed', { maxInFlight: 1000 })) {
    seen.add(message.payload.toString());
    deliveries++;
    void message.ack();
    if (deliveries === COUNT) break;
  }
  assert.equal(seen.size, COUNT);
  await eventually(async () => {
    const { summary } = await client.queueStats('killed');
    return summary.depth === 0 && summary.inFlight === 0;
  });
});

test('a consumer goes on by itself after the server was killed and started again', async () => {
  await using client = connected({ timeoutMs: 20_000 });
  await client.createQueue('goes-on');
  await using consumer = client.consume('goes-on');
  const next = consumer.next();
  await sleep(100);
  await server.kill();
  await server.start();
  const id = await client.enqueue('goes-on');
  const { value } = await next;
  assert.equal(value?.id, id);
  await value.ack();
});

test('a call ends at its deadline, or when it is aborted, while the server is away', async () => {
  await using client = new Client(`127.0.0.1:${await freePort()}`, {
    timeoutMs: 300,
    openTelemetry: false,
  });
  const began = Date.now();
  await assert.rejects(client.enqueue('q'), UnavailableError);
  await assert.rejects(client.listQueues(), UnavailableError);
  await assert.rejects(client.ack('q', 'id'), UnavailableError);
  const timeoutMs = 60_000;
  await assert.rejects(
    client.enqueue('q', {}, '', { timeoutMs, signal: AbortSignal.timeout(100) }),
    DeadlineExceededError,
  );
  await assert.rejects(
    client.listQueues({ timeoutMs, signal: AbortSignal.timeout(100) }),
    DeadlineExceededError,
  );
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 100);
  await assert.rejects(client.enqueue('q', {}, '', { timeoutMs, signal: abort.signal }), CancelledError);
  await assert.rejects(client.enqueue('q', {}, '', { timeoutMs, signal: abort.signal }), CancelledError);
  assert.deepEqual(await client.consume('q').take(1, { timeoutMs: 100 }), []);
  assert.ok(Date.now() - began < 5000);
});

test('of several addresses one that answers is used', async () => {
  const dead = `127.0.0.1:${await freePort()}`;
  await using client = new Client(`${dead},${server.address}`, { openTelemetry: false });
  assert.ok(await client.ensureQueue('addresses'));
  assert.equal(await client.ensureQueue('addresses'), false);
  assert.equal((await client.enqueue('addresses')).length, 36);
});

test('refusals have the error of their kind', async () => {
  await using client = connected();
  await client.createQueue('full', { maxDepth: 1, overflow: 'reject' });
  await client.enqueue('full');
  await assert.rejects(client.enqueue('missing'), (error: QueueNotFoundError) => {
    assert.ok(error instanceof QueueNotFoundError);
    assert.deepEqual(
      [error.name, error.kind, error.retryable],
      ['QueueNotFoundError', 'QUEUE_NOT_FOUND', false],
    );
    return true;
  });
  await assert.rejects(client.consume('missing').next(), QueueNotFoundError);
  await assert.rejects(client.queueStats('missing'), QueueNotFoundError);
  await assert.rejects(client.createQueue('full'), QueueAlreadyExistsError);
  await assert.rejects(client.createQueue('a#b'), InvalidArgumentError);
  await assert.rejects(client.getConfig('throttle.missing'), ConfigNotFoundError);
  await assert.rejects(client.enqueue('full', {}, '', { timeoutMs: 300 }), QueueFullError);
  await assert.rejects(client.enqueue('full', {}, '', { priority: 256 }), InvalidArgumentError);
  await assert.rejects(client.enqueue('full', {}, Buffer.alloc(4 << 20)), { kind: 'PAYLOAD_TOO_LARGE' });
  await assert.rejects(client.enqueue('full', {}, Buffer.alloc(17 << 20)), LimitExceededError);
});

test('an enqueue into a full queue waits for room within its deadline', async () => {
  await using client = connected();
  await client.createQueue('room', { maxDepth: 1 });
  await client.enqueue('room');
  const waiting = client.enqueue('room', {}, 'second', { timeoutMs: 10_000 });
  await using consumer = client.consume('room');
  const [first] = await consumer.take(1);
  await first?.ack();
  assert.equal((await waiting).length, 36);
});

test('closing a client ends what waits, and refuses what comes after', async () => {
  const client = new Client(`127.0.0.1:${await freePort()}`, { timeoutMs: 60_000, openTelemetry: false });
  const waiting = [client.enqueue('q'), client.listQueues(), client.ack('q', 'id')];
  const consumer = client.consume('q');
  const next = consumer.next();
  const settled = Promise.allSettled(waiting);
  await sleep(50);
  await client.close();
  const ended = await settled;
  assert.ok(ended.every((each) => each.status === 'rejected' && each.reason instanceof ClientClosedError));
  assert.deepEqual(await next, { done: true, value: undefined });
  await assert.rejects(client.enqueue('q'), ClientClosedError);
  await assert.rejects(client.listQueues(), ClientClosedError);
  assert.throws(() => client.consume('q'), ClientClosedError);
  await client.close();
});

test('clients that were used and closed leave no socket, timer or listener behind', async () => {
  const stop = new AbortController();
  const round = async (): Promise<void> => {
    await using client = connected();
    await client.createQueue('leaks');
    await client.enqueue('leaks', {}, '', { signal: stop.signal });
    const consumer = client.consume('leaks', { signal: stop.signal });
    const [message] = await consumer.take(1, { signal: stop.signal });
    await consumer.stop();
    await message?.ack({ signal: stop.signal });
    await client.enqueue('leaks');
    await client.consume('leaks').take(1); // a consumer that nobody ends, and a message that nobody settles
    await client.deleteQueue('leaks', { force: true });
  };
  const resources = (): string => process.getActiveResourcesInfo().sort().join(' ');
  await round();
  await sleep(100);
  const before = resources();
  for (let i = 0; i < 10; i++) await round();
  await eventually(() => resources() === before, 3000);
  assert.deepEqual(getEventListeners(stop.signal, 'abort'), []);
});
