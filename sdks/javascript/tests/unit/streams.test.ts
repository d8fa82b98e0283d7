import assert from 'node:assert/strict';
import { test } from 'node:test';

import { status } from '@grpc/grpc-js';

import { ErrorKind } from '../../src/generated/fila/v1/errors.js';
import { Isolation } from '../../src/generated/fila/v1/messages.js';
import type {
  ConsumeRequest,
  EnqueueBatchRequest,
  SettleRequest,
} from '../../src/generated/fila/v1/service.js';
import {
  Client,
  FailedPreconditionError,
  InternalError,
  MessageNotFoundError,
  UnauthenticatedError,
  UnavailableError,
} from '../../src/index.js';
import {
  answered,
  delivered,
  delivery,
  end,
  FakeBroker,
  refusal,
  wireError,
} from '../support/fake-broker.js';
import { eventually } from '../support/server.js';

const connect = (address: string | string[], options = {}): Client =>
  new Client(address, { tls: false, openTelemetry: false, ...options });

test('a batch whose stream was lost is sent again, the same under the same number', async () => {
  const seen: EnqueueBatchRequest[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        seen.push(request);
        if (seen.length < 3) end(call, { code: status.UNAVAILABLE, details: 'lost' });
        else call.write({ ...answered(request), results: [{ messageId: 'one', duplicate: true }] });
      }),
  });
  await using client = connect(broker.address);
  // That the first attempt arrived says nothing about the message: it is no duplicate.
  assert.deepEqual(await client.enqueueMessage('q', { payload: 'x' }), { id: 'one', duplicate: false });
  assert.equal(seen.length, 3);
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen[2], seen[0]);
});

test('calls of one turn travel in one batch, and calls while the wire is busy in the next', async () => {
  const sizes: number[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        sizes.push(request.messages.length);
        setTimeout(() => call.write(answered(request)), 20);
      }),
  });
  await using client = connect(broker.address);
  await Promise.all(Array.from({ length: 2500 }, () => client.enqueue('q')));
  assert.deepEqual(sizes, [1000, 1000, 500]);
});

test('a batch that nobody waits for any more is not sent again, and its number is not used again', async () => {
  const seen: number[] = [];
  let lose: (() => void) | undefined;
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        seen.push(request.sequence);
        if (seen.length > 1) call.write(answered(request));
        else lose = () => end(call, { code: status.UNAVAILABLE, details: 'lost' });
      }),
    unary: { describe: () => ({ answer: {} }) },
  });
  await using client = connect(broker.address);
  await assert.rejects(client.enqueue('q', {}, '', { timeoutMs: 100 }), { kind: 'DEADLINE_EXCEEDED' });
  lose?.();
  await client.describe(); // its answer comes behind the end of the stream
  await client.enqueue('q');
  assert.deepEqual(seen, [1, 2]);
});

test('a batch that the broker may have forgotten is not sent again, but a settlement is', async (t) => {
  const present = performance.now.bind(performance);
  /** Ten minutes pass, and then the stream is lost. */
  const lose = (call: Parameters<typeof end>[0], ago: number): void => {
    t.mock.method(performance, 'now', () => present() + ago);
    end(call, { code: status.UNAVAILABLE, details: 'lost' });
  };
  const seen: string[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        seen.push(`enqueue ${request.sequence}`);
        if (request.sequence === 1) lose(call, 600_000);
        else call.write(answered(request));
      }),
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => {
        seen.push(`settle ${sequence}`);
        if (seen.length === 3) lose(call, 1_200_000);
        else call.write({ sequence, failures: [] });
      }),
  });
  await using client = connect(broker.address, { timeoutMs: 3_600_000 });
  await assert.rejects(client.enqueue('q'), (error) => {
    assert.ok(error instanceof FailedPreconditionError);
    assert.deepEqual([error.kind, error.retryable], ['STALE_SEQUENCE', false]);
    return true;
  });
  await client.enqueue('q');
  await client.ack('q', 'id');
  assert.deepEqual(seen, ['enqueue 1', 'enqueue 2', 'settle 1', 'settle 1']);
});

test('what is refused for now is sent again under a new number, not before the broker wants it', async () => {
  const seen: [number, number][] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        seen.push([request.sequence, Date.now()]);
        const error = wireError(ErrorKind.ERROR_KIND_QUOTA_EXCEEDED, { retryAfterMs: 300, code: 8 });
        call.write(
          seen.length === 1 ? { results: [], sequence: request.sequence, error } : answered(request),
        );
      }),
  });
  await using client = connect(broker.address);
  await client.enqueue('q');
  const [[first, began], [second, came]] = seen as [[number, number], [number, number]];
  assert.deepEqual([first, second], [1, 2]);
  assert.ok(came - began >= 295, `${came - began} ms`);
});

for (const [kind, retryAfterMs] of [
  [ErrorKind.ERROR_KIND_OVERLOADED, 0],
  [ErrorKind.ERROR_KIND_QUOTA_EXCEEDED, 300],
] as const) {
  test(`what may have been carried out keeps its number when it is refused for now: ${ErrorKind[kind]}`, async () => {
    const taken = new Map<number, EnqueueBatchRequest>();
    const seen: [stream: number, sequence: number, at: number][] = [];
    let streams = 0;
    using broker = await FakeBroker.start({
      enqueueStream: (call) => {
        const stream = ++streams;
        call.on('data', (request: EnqueueBatchRequest) => {
          const { sequence } = request;
          seen.push([stream, sequence, Date.now()]);
          if (stream === 2 || (stream === 3 && sequence === 2)) {
            call.write({ results: [], sequence, error: wireError(kind, { retryAfterMs, code: 8 }) });
            return;
          }
          // Both are taken, and the answers are lost.
          if (taken.has(sequence)) assert.deepEqual(request, taken.get(sequence));
          taken.set(sequence, request);
          if (stream > 1) call.write(answered(request));
          else if (taken.size === 2) end(call, { code: status.UNAVAILABLE, details: 'lost' });
        });
      },
    });
    await using client = connect(broker.address);
    const first = client.enqueue('q', {}, 'one');
    await eventually(() => taken.size === 1);
    const second = client.enqueue('q', {}, 'two');
    assert.deepEqual(await Promise.all([first, second]), ['id-1-0', 'id-2-0']);
    assert.equal(taken.size, 2, 'under another number they would be enqueued twice');
    assert.deepEqual(
      seen.slice(2).map(([stream, sequence]) => [stream, sequence]),
      [
        [2, 1],
        [3, 1],
        [3, 2],
        [4, 2],
      ],
      'each is alone: no higher number gets through first',
    );
    const at = seen.map((each) => each[2]) as [number, number, number, number, number, number];
    assert.ok(at[3] - at[2] >= retryAfterMs - 5 && at[5] - at[4] >= retryAfterMs - 5, at.join(' '));
    assert.equal(await client.enqueue('q'), 'id-3-0');
  });
}

test('what is refused until its deadline may or may not have been carried out; it was tried with backoff', async () => {
  const seen: number[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        const { sequence } = request;
        seen.push(sequence);
        const error = wireError(ErrorKind.ERROR_KIND_OVERLOADED, { message: 'too much waits', code: 8 });
        if (seen.length === 1) end(call, { code: status.UNAVAILABLE, details: 'lost' });
        else call.write(sequence === 1 ? { results: [], sequence, error } : answered(request));
      }),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.enqueue('q', {}, '', { timeoutMs: 2000 }), {
    kind: 'DEADLINE_EXCEEDED',
    retryable: false,
    message: 'no answer before the deadline (too much waits)',
  });
  assert.equal(await client.enqueue('q'), 'id-2-0');
  const tries = seen.filter((sequence) => sequence === 1).length;
  assert.ok(
    tries <= 9,
    `${tries} tries in 2 s: the waits are at least 10, 20, 40, 80, 160, 320, 500, 500 and 500 ms`,
  );
});

test('a refusal of an earlier sending says nothing about the one that has no answer', async () => {
  const seen: number[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', ({ sequence }: EnqueueBatchRequest) => {
        seen.push(sequence);
        const error = wireError(ErrorKind.ERROR_KIND_OVERLOADED, { code: 8 });
        if (sequence === 1) call.write({ results: [], sequence, error });
      }),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.enqueue('q', {}, '', { timeoutMs: 1500 }), { kind: 'DEADLINE_EXCEEDED' });
  assert.deepEqual(seen, [1, 2]);
});

test('what may have been carried out keeps its name and number also at the member that is named then', async () => {
  const seen: string[] = [];
  const note = (member: string, { producerId, sequence }: EnqueueBatchRequest): void => {
    seen.push(`${member} ${producerId} ${sequence}`);
  };
  using owner = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        note('owner', request);
        call.write(answered(request));
      }),
  });
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        note('other', request);
        const error = wireError(ErrorKind.ERROR_KIND_NOT_OWNER, { owner: owner.address });
        if (seen.length === 1) end(call, { code: status.UNAVAILABLE, details: 'lost' });
        else call.write({ results: [], sequence: request.sequence, error });
      }),
  });
  await using client = connect(broker.address);
  assert.equal(await client.enqueue('q'), 'id-1-0');
  const [first = ''] = seen;
  assert.deepEqual(seen, [first, first, first.replace('other', 'owner')]);
});

test('the member that is named in-band is asked, and counts batches by itself', async () => {
  const producers: string[] = [];
  using owner = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        producers.push(`${request.producerId} ${request.sequence}`);
        call.write(answered(request, 'owner'));
      }),
  });
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) => {
        producers.push(`${request.producerId} ${request.sequence}`);
        const error = wireError(ErrorKind.ERROR_KIND_NOT_OWNER, { owner: owner.address });
        call.write({
          results: [{ messageId: '', duplicate: false, error }],
          sequence: request.sequence,
        });
      }),
  });
  await using client = connect(broker.address);
  assert.equal(await client.enqueue('q'), 'owner-1-0');
  assert.equal(new Set(producers).size, 2);
  assert.ok(producers.every((each) => each.endsWith(' 1')));
});

test('a call follows members that name each other four times in a row, and no more', async () => {
  let calls = 0;
  const addresses: string[] = [];
  const passOn = (to: number) => () => {
    calls++;
    return refusal(wireError(ErrorKind.ERROR_KIND_NOT_OWNER), addresses[to]);
  };
  using one = await FakeBroker.start({ unary: { describe: passOn(1) } });
  using two = await FakeBroker.start({ unary: { describe: passOn(0) } });
  addresses.push(one.address, two.address);
  await using client = connect(one.address);
  await assert.rejects(client.describe(), (error: UnavailableError) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.kind, 'NOT_OWNER');
    return true;
  });
  assert.equal(calls, 5);
});

test('a key that has ended is read anew once, then it is an error', async () => {
  const keys: unknown[] = [];
  using broker = await FakeBroker.start({
    enqueueStream: (call) => {
      keys.push(call.metadata.get('authorization')[0]);
      const ended = wireError(ErrorKind.ERROR_KIND_KEY_ENDED, { code: 16, retryable: false });
      call.on('data', () => end(call, refusal(ended)));
    },
  });
  let count = 0;
  await using client = connect(broker.address, { apiKey: () => `key-${count++}` });
  await assert.rejects(client.enqueue('q'), (error: UnauthenticatedError) => {
    assert.ok(error instanceof UnauthenticatedError);
    assert.equal(error.kind, 'KEY_ENDED');
    return true;
  });
  assert.equal(keys.length, 2);
  assert.notEqual(keys[0], keys[1]);
});

test('an answer that belongs to no request is an error, and the client goes on', async () => {
  let count = 0;
  using broker = await FakeBroker.start({
    enqueueStream: (call) =>
      call.on('data', (request: EnqueueBatchRequest) =>
        call.write(count++ === 0 ? { results: [], sequence: 77 } : answered(request)),
      ),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.enqueue('q'), InternalError);
  assert.equal(await client.enqueue('q'), 'id-2-0');
});

test('an ack that is sent again and refused as gone was done; refused otherwise, it has failed', async () => {
  const kinds = new Map([
    ['gone', ErrorKind.ERROR_KIND_MESSAGE_GONE],
    ['ended', ErrorKind.ERROR_KIND_LEASE_ENDED],
  ]);
  let streams = 0;
  using broker = await FakeBroker.start({
    settle: (call) => {
      const isFirst = streams++ === 0;
      call.on('data', ({ acks, nacks, sequence }: SettleRequest) => {
        if (isFirst) {
          end(call, { code: status.UNAVAILABLE, details: 'lost' });
          return;
        }
        const ids = [...acks.flatMap((group) => group.messageIds), ...nacks.map((nack) => nack.messageId)];
        const failures = ids.map((messageId) => {
          const kind = kinds.get(messageId.split('-')[0] ?? '') as ErrorKind;
          return { queue: 'q', messageId, error: wireError(kind, { code: 5, retryable: false }) };
        });
        call.write({ sequence, failures });
      });
    },
  });
  await using client = connect(broker.address);
  const settled = [client.ack('q', 'gone-1'), client.ack('q', 'ended-1'), client.nack('q', 'gone-2')];
  const [gone, ended, nacked] = await Promise.allSettled(settled);
  assert.equal(gone?.status, 'fulfilled');
  assert.ok(ended?.status === 'rejected' && ended.reason instanceof MessageNotFoundError);
  assert.ok(nacked?.status === 'rejected' && nacked.reason instanceof MessageNotFoundError);
  // Without a lost answer nobody knows who has removed the message.
  await assert.rejects(client.ack('q', 'gone-3'), { kind: 'MESSAGE_GONE' });
});

test('an ack that is sent again and refused for now is still one that was sent before', async () => {
  const seen: number[] = [];
  using broker = await FakeBroker.start({
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => {
        seen.push(sequence);
        const busy = wireError(ErrorKind.ERROR_KIND_OVERLOADED, { code: 8 });
        const gone = wireError(ErrorKind.ERROR_KIND_MESSAGE_GONE, { code: 5, retryable: false });
        if (seen.length === 1) end(call, { code: status.UNAVAILABLE, details: 'lost' });
        else if (seen.length < 4) call.write({ sequence, failures: [], error: busy });
        else call.write({ sequence, failures: [{ queue: 'q', messageId: 'a', error: gone }] });
      }),
  });
  await using client = connect(broker.address);
  await client.ack('q', 'a');
  assert.deepEqual(seen, [1, 1, 1, 1]);
});

test('an ack that was only refused before is not taken for one that was done', async () => {
  const seen: number[] = [];
  using broker = await FakeBroker.start({
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => {
        seen.push(sequence);
        const busy = wireError(ErrorKind.ERROR_KIND_OVERLOADED, { code: 8 });
        const gone = wireError(ErrorKind.ERROR_KIND_MESSAGE_GONE, { code: 5, retryable: false });
        if (seen.length === 1) call.write({ sequence, failures: [], error: busy });
        else call.write({ sequence, failures: [{ queue: 'q', messageId: 'a', error: gone }] });
      }),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.ack('q', 'a'), { kind: 'MESSAGE_GONE' });
  assert.deepEqual(seen, [1, 2]);
});

test('a message that is delivered alone is reported before the application has it', async () => {
  let reported = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      call.on('data', ({ handed, queue }: ConsumeRequest) => {
        reported = Math.max(reported, handed);
        if (queue === 'q') {
          const messages = [delivered('a', Isolation.ISOLATION_CONFIRMED)];
          call.write({ messages, visibilityTimeoutMs: 0, activeWeight: 0 });
        }
      });
      call.on('end', () => call.end());
    },
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  const [alone] = await consumer.take(5);
  assert.equal(alone?.isolated, true);
  await eventually(() => reported === 1); // it was written before, and is read in one of the next turns
});

test('a consumer reports what was handed, and says goodbye by half-closing', async () => {
  const reports: number[] = [];
  let goodbye = false;
  using broker = await FakeBroker.start({
    consume: (call) => {
      call.on('data', ({ handed, queue }: ConsumeRequest) => {
        reports.push(handed);
        if (queue !== '') {
          call.write(delivery('a', 'b', 'c', 'd'));
        }
      });
      call.on('end', () => {
        goodbye = true;
        call.end();
      });
    },
  });
  await using client = connect(broker.address);
  const consumer = client.consume('q');
  const taken = await consumer.take(3);
  await consumer.stop();
  assert.deepEqual(
    taken.map((each) => each.id),
    ['a', 'b', 'c'],
  );
  assert.ok(goodbye);
  assert.equal(reports.at(-1), 3);
  assert.deepEqual(await consumer.take(1), []);
});
