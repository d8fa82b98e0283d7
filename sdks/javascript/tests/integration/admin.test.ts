import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Client, MessageNotFoundError } from '../../src/index.js';
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

test('the server describes itself', async () => {
  const { version, limits } = await client.describe();
  assert.match(version, /^\d+\.\d+/);
  assert.ok((limits?.maxPayloadBytes ?? 0) > 1_000_000);
});

test('settings are set, changed and told, in the words of the SDK', async () => {
  await client.createQueue('settings', {
    throttleHeaders: ['provider'],
    overflow: 'drop_oldest',
    maxDepth: 10,
  });
  const { settings, summary } = await client.queueStats('settings');
  assert.deepEqual(
    [settings.throttleHeaders, settings.overflow, settings.maxDepth],
    [['provider'], 'drop_oldest', 10],
  );
  assert.equal(summary.deadLetterQueue, 'settings.dlq');
  const changed = await client.updateQueue('settings', { maxAttempts: 7 });
  assert.deepEqual([changed.maxAttempts, changed.maxDepth], [7, 10]);
  await assert.rejects(client.updateQueue('settings', { overflow: 'explode' as 'reject' }), {
    kind: 'INVALID_ARGUMENT',
  });
});

test('a paused queue delivers nothing until it is resumed, and explains itself', async () => {
  await client.createQueue('paused');
  await client.pauseQueue('paused');
  const messageId = await client.enqueue('paused');
  await using consumer = client.consume('paused');
  assert.deepEqual(await consumer.take(1, { timeoutMs: 300 }), []);
  const { state, reasons } = await client.explain('paused', { messageId });
  assert.deepEqual([state, reasons[0]?.code], ['ready', 'paused']);
  await client.resumeQueue('paused');
  assert.equal((await consumer.take(1)).length, 1);
  const missing = { messageId: '01a1ee5b-d9aa-7c5b-a3f8-c1acfaf7e69b' };
  await assert.rejects(client.explain('paused', missing), MessageNotFoundError);
});

test('throttles are set and removed', async () => {
  await client.setThrottle('provider:aws', { rate: 5, burst: 10, maxInFlight: 3 });
  assert.equal(await client.getConfig('throttle.provider:aws'), 'rate=5,burst=10,max_in_flight=3');
  assert.deepEqual([...(await client.listConfig('throttle.')).keys()], ['throttle.provider:aws']);
  assert.equal(await client.removeThrottle('provider:aws'), true);
  assert.equal(await client.removeThrottle('provider:aws'), false);
});

test('messages are found by a filter, counted, and purged', async () => {
  await client.createQueue('sweep');
  await client.enqueueMany(
    'sweep',
    Array.from({ length: 30 }, (_, n) => ({ headers: { kind: n % 3 === 0 ? 'third' : 'other' } })),
  );
  const third = { headers: { kind: 'third' }, states: ['ready'] as const };
  const page = await client.peek('sweep', { ...third, limit: 4 });
  assert.equal(page.messages.length, 4);
  assert.notEqual(page.cursor, '');
  const rest = await client.peek('sweep', { ...third, cursor: page.cursor });
  assert.equal(rest.messages.length, 6);
  const anyQueue = true;
  assert.equal(await client.purge('sweep', { ...third, anyQueue, dryRun: true }), 10);
  assert.equal(await client.purge('sweep', { ...third, anyQueue, count: 4 }), 4);
  assert.equal(await client.purge('sweep', { anyQueue }), 26);
  await assert.rejects(client.purge('sweep'), { kind: 'INVALID_ARGUMENT' });
});

test('a queue with dead letters is deleted with force only', async () => {
  await client.createQueue('delete');
  await client.enqueue('delete');
  await using consumer = client.consume('delete');
  const [message] = await consumer.take(1);
  await message?.reject('bad');
  await assert.rejects(client.deleteQueue('delete'), { kind: 'FAILED_PRECONDITION' });
  assert.equal(await client.deleteQueue('delete', { force: true }), 1);
  assert.ok(!(await client.listQueues()).some((queue) => queue.name === 'delete'));
});
