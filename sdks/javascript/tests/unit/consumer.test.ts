import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { status } from '@grpc/grpc-js';

import type { ConsumerContext } from '../../src/consumer.js';
import { ErrorKind } from '../../src/generated/fila/v1/errors.js';
import { Isolation } from '../../src/generated/fila/v1/messages.js';
import {
  type ConsumeRequest,
  ConsumeResponse,
  type SettleRequest,
} from '../../src/generated/fila/v1/service.js';
import { InFlight } from '../../src/in-flight.js';
import { Client, Consumer, InternalError, QueueNotFoundError } from '../../src/index.js';
import {
  accept,
  type ConsumeStream,
  delivered,
  delivery,
  end,
  FakeBroker,
  refusal,
  type SettleStream,
  wireError,
} from '../support/fake-broker.js';
import { eventually } from '../support/server.js';

const INVALID = { name: 'InvalidArgumentError', kind: 'INVALID_ARGUMENT' };

const connect = (address: string, options = {}): Client =>
  new Client(address, { tls: false, openTelemetry: false, ...options });

/** Ends when the client says goodbye. */
const polite = (call: ConsumeStream): void => void call.on('end', () => call.end());

test('bytes that mean nothing end the consumer with an error, and the client goes on', async () => {
  using broker = await FakeBroker.start({
    consumeBytes: (call) => {
      call.on('data', () => call.write(Buffer.from([0x0a, 0xff, 0xff])));
    },
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => call.write({ sequence, failures: [] })),
  });
  await using client = connect(broker.address);
  await assert.rejects(client.consume('q').next(), (error: InternalError) => {
    assert.ok(error instanceof InternalError);
    assert.match(error.message, /unexpected answer/);
    return true;
  });
  await client.ack('q', 'id');
});

test('a consumer of a quiet queue outlives any number of keys', async () => {
  let opened = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      polite(call);
      call.on('data', () => undefined);
      accept(call);
      if (++opened === 4) call.write(delivery('a'));
      else
        setImmediate(() => {
          end(call, refusal(wireError(ErrorKind.ERROR_KIND_KEY_ENDED, { code: 16, retryable: false })));
        });
    },
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  const { value } = await consumer.next();
  assert.equal(value?.id, 'a');
});

test('what is not read is bounded, also if the broker keeps to no credit', async () => {
  const payload = Buffer.alloc(64 * 1024);
  const MOST = 2000;
  let written = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      polite(call);
      call.on('data', () => undefined);
      accept(call);
      const write = (): void => {
        while (written < MOST) {
          const id = String(written++);
          if (!call.write({ ...delivery(), messages: [{ ...delivered(id), payload }] })) return;
        }
      };
      call.on('drain', write);
      write();
    },
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q', { maxInFlight: 10 });
  const first = await consumer.take(3);
  for (let before = -1; before < written; await sleep(300)) before = written;
  assert.ok(written < MOST / 4, `${written} were read`);
  // And it goes on when there is room.
  const rest = await consumer.take(200);
  assert.deepEqual(
    [...first, ...rest].map((message) => message.id),
    Array.from({ length: 203 }, (_, n) => String(n)),
  );
});

test('a prefetched message whose lease has ended is not handed: it comes again', async () => {
  const handed: number[] = [];
  let stream: ConsumeStream | undefined;
  using broker = await FakeBroker.start({
    consume: (call) => {
      stream = call;
      polite(call);
      call.on('data', (request: ConsumeRequest) => handed.push(request.handed));
      accept(call, 50);
      call.write(delivery('a', 'b'));
    },
  });
  await using client = connect(broker.address);
  const consumer = client.consume('q', { autoExtend: false });
  await consumer.take(1);
  await sleep(60); // a lease ends with time only
  stream?.write(delivery('c'));
  const [next] = await consumer.take(1);
  assert.equal(next?.id, 'c');
  await consumer.stop();
  assert.equal(handed.at(-1), 3); // the place of the last one that was handed
});

test('a prefetched message whose lease was lost by the way is not handed', async () => {
  let stream: ConsumeStream | undefined;
  let refused = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      stream = call;
      polite(call);
      call.on('data', () => undefined);
      accept(call, 150);
      call.write(delivery('a'));
    },
    settle: (call: SettleStream) =>
      call.on('data', ({ sequence, extends: extensions }: SettleRequest) => {
        const error = wireError(ErrorKind.ERROR_KIND_LEASE_ENDED, { code: 5, retryable: false });
        const ids = extensions.flatMap((extension) => extension.messageIds);
        refused += ids.length;
        call.write({ sequence, failures: ids.map((messageId) => ({ queue: 'q', messageId, error })) });
        stream?.write(delivery('b'));
      }),
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  await eventually(() => refused > 0);
  await client.ack('q', 'other'); // its answer comes behind the refusal
  const [next] = await consumer.take(1);
  assert.equal(next?.id, 'b');
});

test('a consumer that is refused while a message is about to be handed tells the error', async () => {
  const idle = { write: () => true, end: () => undefined, cancel: () => undefined };
  const call = Object.assign(new EventEmitter(), idle, { pause: () => undefined, resume: () => undefined });
  const connection = {
    closed: false,
    ready: () => Promise.resolve({ address: 'a:1', open: () => call }),
    metadata: () => undefined,
  };
  const settler = { settle: () => Promise.resolve(new Map()) };
  const context = { connection, settler, inFlight: new InFlight(), tracing: {}, consumers: new Set() };
  const consumer = new Consumer(context as unknown as ConsumerContext, 'q', {});
  const next = consumer.next();
  await eventually(() => call.listenerCount('data') > 0);
  const alone = { ...delivery(), messages: [delivered('a', Isolation.ISOLATION_CONFIRMED)] };
  call.emit('data', Buffer.from(ConsumeResponse.encode(alone).finish()));
  const error = wireError(ErrorKind.ERROR_KIND_QUEUE_NOT_FOUND, { code: 5, retryable: false });
  call.emit('error', Object.assign(new Error('refused'), refusal(error)));
  await assert.rejects(next, QueueNotFoundError);
});

test('a visibility timeout of months floods nobody', async () => {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', note);
  using broker = await FakeBroker.start({
    consume: (call) => {
      polite(call);
      call.on('data', () => undefined);
      accept(call, 2 ** 40);
      call.write(delivery('a'));
    },
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  await consumer.take(1);
  await sleep(0);
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});

test('a consumer that is left at once leaves no timer behind', async () => {
  let stream: ConsumeStream | undefined;
  using broker = await FakeBroker.start({
    consume: (call) => {
      stream = call;
      call.on('data', () => undefined);
    },
  });
  await using client = connect(broker.address);
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const consumer = client.consume('q');
  await eventually(() => stream !== undefined);
  const left = consumer.return();
  accept(stream as ConsumeStream); // too late
  stream?.on('end', () => stream?.end());
  await left;
  await eventually(() => timers() <= before);
});

test('a loop that throws or is left says goodbye, and its error is what the program gets', async () => {
  let goodbyes = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      call.on('data', () => undefined);
      call.on('end', () => {
        goodbyes++;
        call.end();
      });
      accept(call);
      call.write(delivery('a', 'b'));
    },
  });
  await using client = connect(broker.address);
  const own = new Error('of the program');
  await assert.rejects(async () => {
    for await (const message of client.consume('q')) {
      assert.equal(message.id, 'a');
      throw own;
    }
  }, own);
  for await (const message of client.consume('q')) {
    assert.equal(message.id, 'a');
    break;
  }
  assert.equal(goodbyes, 2);
});

test('a broker that does not answer a goodbye does not hold the program', async () => {
  using broker = await FakeBroker.start({
    consume: (call) => {
      call.on('data', () => undefined);
      accept(call);
      call.write(delivery('a'));
    },
  });
  const client = connect(broker.address);
  const consumer = client.consume('q');
  await consumer.take(1);
  const stopped = consumer.stop();
  await client.close();
  await stopped;
  assert.deepEqual(await consumer.next(), { done: true, value: undefined });
});

test('a consumer goes on when its stream was lost, and reads nothing twice from the former one', async () => {
  let opened = 0;
  using broker = await FakeBroker.start({
    consume: (call) => {
      polite(call);
      call.on('data', () => undefined);
      accept(call);
      const isFirst = opened++ === 0;
      call.write(delivery(...(isFirst ? ['a', 'b'] : ['c'])));
      if (isFirst) setTimeout(() => end(call, { code: status.UNAVAILABLE, details: 'lost' }), 20);
    },
    settle: (call) =>
      call.on('data', ({ sequence }: SettleRequest) => call.write({ sequence, failures: [] })),
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  const [first] = await consumer.take(1);
  await eventually(() => opened === 2);
  const [second] = await consumer.take(1);
  assert.deepEqual([first?.id, second?.id], ['a', 'c']);
});

test('what a consumer is asked for is checked at once', async () => {
  await using client = connect('127.0.0.1:1');
  const wrong = [
    () => client.consume(undefined as never),
    () => client.consume('q', { maxInFlight: -1 }),
    () => client.consume('q', { maxInFlight: 1.5 }),
    () => client.consume('q', { signal: { aborted: true } as never }),
  ];
  for (const consume of wrong) assert.throws(consume, INVALID, consume.toString());
  const consumer = client.consume('q');
  assert.throws(() => consumer.setMaxInFlight(NaN), INVALID);
  await assert.rejects(consumer.take('1' as never), INVALID);
  await assert.rejects(consumer.take(1, { timeoutMs: NaN }), INVALID);
});

test('the error of a consumer has the stack of the call that it ends', async () => {
  const refused = refusal(wireError(ErrorKind.ERROR_KIND_QUEUE_NOT_FOUND, { code: 5, retryable: false }));
  using broker = await FakeBroker.start({
    consume: (call) => {
      call.on('data', ({ handed }: ConsumeRequest) => {
        if (handed > 0) end(call, refused);
      });
      accept(call);
      call.write(delivery('a'));
    },
    settle: (call) => call.on('data', () => end(call, refused)),
  });
  await using client = connect(broker.address);
  await using consumer = client.consume('q');
  const [message] = await consumer.take(1);
  const calls = [() => consumer.next(), () => consumer.take(1), () => message?.ack()];
  for (const call of calls) {
    const theProgram = async (): Promise<void> => {
      await call();
    };
    await assert.rejects(theProgram, (error: Error) => {
      assert.ok(error instanceof QueueNotFoundError);
      assert.match(error.stack ?? '', /at async theProgram /, call.toString());
      return true;
    });
  }
});

test('any number of consumers may have one signal: nobody is warned, and nothing is left on it', async () => {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', note);
  await using client = connect('127.0.0.1:1');
  const abort = new AbortController();
  const { signal } = abort;
  const consumers = Array.from({ length: 30 }, () => client.consume('q', { signal }));
  const waiting = consumers.map((consumer) => consumer.next());
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  abort.abort();
  assert.ok((await Promise.all(waiting)).every(({ done }) => done));
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', note);
  assert.deepEqual(warnings, []);
});
