import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Metadata, status } from '@grpc/grpc-js';

import { ErrorKind } from '../../src/generated/fila/v1/errors.js';
import type { EnqueueBatchRequest } from '../../src/generated/fila/v1/service.js';
import { Client, InternalError } from '../../src/index.js';
import { answered, end, type EnqueueStream, FakeBroker, refusal, wireError } from '../support/fake-broker.js';
import { eventually, freePort } from '../support/server.js';

const connect = (address: string | string[], options = {}): Client =>
  new Client(address, { tls: false, openTelemetry: false, ...options });

const NOT_OWNER = wireError(ErrorKind.ERROR_KIND_NOT_OWNER);
const described = () => ({ answer: { version: '1' } });
const answering = (call: EnqueueStream): void =>
  void call.on('data', (request: EnqueueBatchRequest) => call.write(answered(request)));

/** Takes connections and says nothing. */
class Silent implements Disposable {
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      socket.resume();
    });
  }

  static async listen(where: string | number): Promise<Silent> {
    const silent = new Silent();
    if (typeof where === 'number') silent.#server.listen(where, '127.0.0.1');
    else silent.#server.listen(where);
    await once(silent.#server, 'listening');
    return silent;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

test('an address that takes connections and says nothing does not keep the others from being used', async () => {
  using silent = await Silent.listen(0);
  using broker = await FakeBroker.start({ enqueueStream: answering, unary: { describe: described } });
  await using client = connect([silent.address, broker.address], { timeoutMs: 30_000 });
  assert.equal(await client.enqueue('q'), 'id-1-0');
  assert.equal((await client.describe()).version, '1');
});

test('an address that is given twice does not keep the others from being used', async () => {
  const dead = `127.0.0.1:${await freePort()}`;
  using broker = await FakeBroker.start({ unary: { describe: described } });
  await using client = connect([dead, dead, broker.address], { timeoutMs: 30_000 });
  assert.equal((await client.describe()).version, '1');
});

test('an address that says nothing has one connection, however long it is tried', async () => {
  using silent = await Silent.listen(0);
  const dead = `127.0.0.1:${await freePort()}`;
  await using client = connect([silent.address, dead], { timeoutMs: 2500 });
  await assert.rejects(client.describe(), { kind: 'UNAVAILABLE' });
  assert.equal(silent.sockets.size, 1);
});

test('what a member names is followed only if it is an address', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fila-js-'));
  const path = join(folder, 'socket');
  using local = await Silent.listen(path);
  let reached = 0;
  local.sockets.add = (socket) => {
    reached++;
    return Set.prototype.add.call(local.sockets, socket) as Set<Socket>;
  };
  for (const owner of [`unix:${path}`, `unix://${path}`, 'a:b:c', 'host', 'host:0', ':1', ' :1']) {
    let calls = 0;
    using broker = await FakeBroker.start({
      unary: { describe: () => (calls++ === 0 ? refusal(NOT_OWNER, owner) : described()) },
    });
    await using client = connect(broker.address);
    assert.equal((await client.describe()).version, '1', owner);
  }
  assert.equal(reached, 0);
  rmSync(folder, { recursive: true });
});

test('the member that a passed-on call names is asked the next time', async () => {
  let asked = 0;
  using owner = await FakeBroker.start({
    unary: {
      describe: () => {
        asked++;
        return described();
      },
    },
  });
  using broker = await FakeBroker.start({
    unary: {
      describe: () => {
        const trailers = new Metadata();
        trailers.set('fila-owner', owner.address);
        return { ...described(), trailers };
      },
    },
  });
  await using client = connect(broker.address);
  await client.describe();
  assert.equal(asked, 0);
  await client.describe();
  assert.equal(asked, 1);
});

test('streams follow members that name each other a few times, and then it is an error', async () => {
  let streams = 0;
  const addresses: string[] = [];
  const passOn = (to: number) => (call: EnqueueStream) => {
    streams++;
    call.on('data', () => end(call, refusal(NOT_OWNER, addresses[to])));
  };
  using one = await FakeBroker.start({ enqueueStream: passOn(1) });
  using two = await FakeBroker.start({ enqueueStream: passOn(0) });
  addresses.push(one.address, two.address);
  await using client = connect(one.address, { timeoutMs: 60_000 });
  await assert.rejects(client.enqueue('q'), { kind: 'NOT_OWNER' });
  assert.equal(streams, 5);
});

test('what a member has begun it also ends, when the client moves to another one meanwhile', async () => {
  let streams = 0;
  let finish: (() => void) | undefined;
  let requests = 0;
  const texts: string[] = [];
  using owner = await FakeBroker.start({ enqueueStream: answering, unary: { describe: described } });
  using broker = await FakeBroker.start({
    unary: { describe: () => refusal(NOT_OWNER, owner.address) },
    enqueueStream: (call) => {
      const isFirst = streams++ === 0;
      call.on('data', (request: EnqueueBatchRequest) => {
        requests++;
        if (isFirst) {
          if (requests === 1) call.write(answered(request, 'first'));
          // A refusal that may be the fault of either batch: so they are sent again, one at a time.
          if (requests === 3) end(call, { code: status.RESOURCE_EXHAUSTED, details: 'too large' });
          return;
        }
        texts.push(...request.messages.map((message) => message.payload.toString()));
        const answer = (): void => void call.write(answered(request, 'first'));
        if (texts.length === 1) finish = answer;
        else answer();
      });
    },
  });
  await using client = connect(broker.address, { timeoutMs: 20_000 });
  await client.enqueue('q', {}, 'zero');
  const one = client.enqueue('q', {}, 'one');
  await eventually(() => requests === 2); // another turn: another batch
  const two = client.enqueue('q', {}, 'two');
  await eventually(() => finish !== undefined);
  await client.describe(); // the client has moved
  const three = client.enqueue('q', {}, 'three');
  finish?.();
  assert.deepEqual(await Promise.all([one, two, three]), ['first-2-0', 'first-3-0', 'id-1-0']);
  assert.deepEqual(texts, ['one', 'two']);
});

test('an answer to a call that means nothing is an error at once', async () => {
  let calls = 0;
  using broker = await FakeBroker.start({
    unary: {
      describe: () => {
        calls++;
        return { answer: Buffer.from([0x0a, 0xff]) };
      },
    },
  });
  await using client = connect(broker.address);
  await assert.rejects(client.describe(), (error: InternalError) => {
    assert.ok(error instanceof InternalError);
    assert.match(error.message, /unexpected answer/);
    assert.ok(error.cause instanceof Error);
    return true;
  });
  assert.equal(calls, 1);
});

test('a list that does not go on is an error, and not read for ever', async () => {
  let calls = 0;
  const page = (given: object) => () => {
    calls++;
    return { answer: { ...given, cursor: 'again' } };
  };
  using broker = await FakeBroker.start({
    unary: { listQueues: page({ queues: [] }), listConfig: page({ entries: [] }) },
  });
  await using client = connect(broker.address);
  await assert.rejects(client.listQueues(), InternalError);
  await assert.rejects(client.listConfig(), InternalError);
  assert.equal(calls, 4);
});

test('a file of a certificate that is gone later is trouble with the connection, and is told', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fila-js-gone-'));
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, '');
  await using client = new Client('127.0.0.1:1', { tls: { ca }, openTelemetry: false, timeoutMs: 200 });
  rmSync(folder, { recursive: true });
  await assert.rejects(client.enqueue('q'), { kind: 'UNAVAILABLE', message: /ca\.pem/ });
  await assert.rejects(client.describe(), { kind: 'UNAVAILABLE', message: /ca\.pem/ });
});
