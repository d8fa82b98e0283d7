import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mock, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { ErrorKind } from '../../src/generated/fila/v1/errors.js';
import type { EnqueueBatchRequest, SettleRequest } from '../../src/generated/fila/v1/service.js';
import { Client, type FilaError, InternalError, QueueNotFoundError } from '../../src/index.js';
import {
  answered,
  type EnqueueStream,
  FakeBroker,
  refusal,
  type SettleStream,
  wireError,
} from '../support/fake-broker.js';
import { eventually, freePort } from '../support/server.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const connect = (address: string, options = {}): Client =>
  new Client(address, { tls: false, openTelemetry: false, ...options });

const NOT_FOUND = wireError(ErrorKind.ERROR_KIND_QUEUE_NOT_FOUND, { code: 5, retryable: false });
const answering = (call: EnqueueStream): void =>
  void call.on('data', (request: EnqueueBatchRequest) => call.write(answered(request)));

/** Refuses all that is asked of it. */
function refusing(): Promise<FakeBroker> {
  return FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', ({ sequence, messages }: EnqueueBatchRequest) => {
        const results = messages.map(() => ({ messageId: '', duplicate: false, error: NOT_FOUND }));
        call.write({ sequence, results });
      }),
    settle: (call: SettleStream) =>
      call.on('data', ({ sequence, acks }: SettleRequest) => {
        const failures = acks.flatMap(({ queue, messageIds }) =>
          messageIds.map((messageId) => ({ queue, messageId, error: NOT_FOUND })),
        );
        call.write({ sequence, failures });
      }),
    unary: { listQueues: () => refusal(NOT_FOUND) },
  });
}

test('an error has the stack of the call that it ends', async () => {
  using broker = await refusing();
  await using client = connect(broker.address);
  const calls = {
    enqueue: () => client.enqueue('q'),
    enqueueMessage: () => client.enqueueMessage('q', {}),
    enqueueMany: () => client.enqueueMany('q', [{}]),
    ack: () => client.ack('q', 'id'),
    listQueues: () => client.listQueues(),
  };
  for (const [name, call] of Object.entries(calls)) {
    const theProgram = async (): Promise<void> => {
      await call();
    };
    await assert.rejects(theProgram, (error: Error) => {
      assert.match(error.stack ?? '', /at async theProgram /, name);
      return true;
    });
  }
});

test('callers whose messages travelled together have an error each', async () => {
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', ({ sequence }: EnqueueBatchRequest) =>
        call.write({ sequence, results: [], error: NOT_FOUND }),
      ),
  });
  await using client = connect(broker.address);
  const [one, two] = await Promise.all(
    [1, 2].map(() => client.enqueue('q').catch((error: unknown) => error as FilaError)),
  );
  assert.ok(one instanceof QueueNotFoundError && two instanceof QueueNotFoundError);
  assert.notEqual(one, two);
  assert.deepEqual({ ...one }, { ...two });
});

test('any number of calls may have one signal: nobody is warned, and nothing is left on it', async () => {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', note);
  using broker = await FakeBroker.start({
    enqueueStream: () => undefined,
    unary: { describe: () => ({ answer: {} }) },
  });
  await using client = connect(broker.address, { timeoutMs: 60_000 });
  const abort = new AbortController();
  const waiting = Array.from({ length: 30 }, () => client.enqueue('q', {}, '', { signal: abort.signal }));
  const settled = Promise.allSettled(waiting);
  await client.describe({ signal: abort.signal });
  assert.equal(getEventListeners(abort.signal, 'abort').length, 1);
  abort.abort();
  assert.ok((await settled).every((each) => each.status === 'rejected'));
  assert.deepEqual(getEventListeners(abort.signal, 'abort'), []);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});

test('a source of many messages is read no further once the call is cancelled or the client closed', async () => {
  using broker = await FakeBroker.start({ enqueueStream: answering });
  const client = connect(broker.address);
  const endings = [(abort: AbortController) => abort.abort(), () => client.close()];
  for (const [kind, finish] of [
    ['CANCELLED', endings[0]],
    ['CLOSED', endings[1]],
  ] as const) {
    const abort = new AbortController();
    let read = 0;
    let left = false;
    async function* endless() {
      try {
        for (;;) {
          if (++read === 5) void finish?.(abort);
          if (read > 1000) return; // else a test that fails would not end
          yield await Promise.resolve({});
        }
      } finally {
        left = true;
      }
    }
    await assert.rejects(client.enqueueMany('q', endless(), { signal: abort.signal }), { kind });
    assert.ok(left);
    assert.equal(read, 5);
  }
});

test('when the source of many messages fails, its error comes after the answers', async () => {
  let answers = 0;
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) =>
        setTimeout(() => {
          answers++;
          call.write(answered(request));
        }, 20),
      ),
  });
  await using client = connect(broker.address);
  const own = new Error('of the source');
  function* source() {
    yield {};
    throw own;
  }
  await assert.rejects(client.enqueueMany('q', source()), own);
  assert.equal(answers, 1);
});

test('messages that were given up are not kept in memory while the broker is silent', async () => {
  using broker = await FakeBroker.start({ enqueueStream: (call) => call.on('data', () => undefined) });
  await using client = connect(broker.address, { maxBufferBytes: 4 << 20 });
  const payload = Buffer.alloc(1 << 20);
  const round = async (timeoutMs: number): Promise<void> => {
    // Half of them wait for room in the buffer.
    const calls = Array.from({ length: 8 }, () => client.enqueue('q', {}, payload, { timeoutMs }));
    await Promise.allSettled(calls);
  };
  await round(50);
  collect();
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 25; n++) await round(30);
  collect();
  const kept = process.memoryUsage().arrayBuffers - before;
  assert.ok(kept < 30 << 20, `${kept >> 20} MiB of 200 MiB are kept`);
});

test('calls that were given up leave nothing in memory while there is no broker', async () => {
  await using client = connect(`127.0.0.1:${await freePort()}`, { timeoutMs: 1 });
  const round = async (): Promise<void> => {
    for (let n = 0; n < 3; n++) {
      await Promise.allSettled(Array.from({ length: 1000 }, () => client.describe()));
    }
    collect();
  };
  await round();
  const kept: number[] = [];
  for (let n = 0; n < 3; n++) {
    const before = process.memoryUsage().heapUsed;
    await round();
    kept.push((process.memoryUsage().heapUsed - before) / 3000);
  }
  // What calls leave behind they leave in each round, and what the runtime compiles only in some.
  assert.ok(Math.min(...kept) < 150, `${kept.join(', ')} bytes of each call are kept`);
});

test('deadlines go by a clock that nobody sets', async () => {
  let answer: (() => void) | undefined;
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => (answer = () => call.write(answered(request)))),
  });
  await using client = connect(broker.address);
  const patient = client.enqueue('q', {}, '', { timeoutMs: 60_000 });
  const hasty = client.enqueue('q', {}, '', { timeoutMs: 100 });
  await eventually(() => answer !== undefined);
  const later = Date.now() + 3_600_000;
  const clock = mock.method(Date, 'now', () => later);
  try {
    await assert.rejects(hasty, { kind: 'DEADLINE_EXCEEDED' });
    answer?.();
    assert.equal(await patient, 'id-1-0');
  } finally {
    clock.mock.restore();
  }
});

test('an answer without an id, and a failure without a reason, are no success', async () => {
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', ({ sequence, messages }: EnqueueBatchRequest) =>
        call.write({ sequence, results: messages.map(() => ({ messageId: '', duplicate: false })) }),
      ),
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) =>
        call.write({ sequence, failures: [{ queue: 'q', messageId: 'id' }] }),
      ),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.enqueue('q'), InternalError);
  await assert.rejects(client.ack('q', 'id'), InternalError);
});
