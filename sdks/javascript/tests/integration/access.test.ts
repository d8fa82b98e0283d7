import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Client, InvalidArgumentError, UnauthenticatedError, UnavailableError } from '../../src/index.js';
import { Authority, type Pair } from '../support/certificates.js';
import { Server } from '../support/server.js';

const folder = mkdtempSync(join(tmpdir(), 'fila-js-tls-'));
let authority: Authority;
let shown: Pair;
let server: Server;
let key: string;
before(async () => {
  authority = new Authority(folder, 'ca');
  shown = authority.sign('client', 'clientAuth');
  const { cert, key: serverKey } = authority.sign('server', 'serverAuth');
  const mutual = `client_ca = "${authority.ca}"\nclient_auth = "required"\n`;
  server = await Server.start(`[tls]\ncert = "${cert}"\nkey = "${serverKey}"\n${mutual}`);
  key = server.initKeys({ ca: authority.ca, ...shown });
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const secure = (options = {}): Client =>
  new Client(`localhost:${server.port}`, {
    tls: { ca: authority.ca, ...shown },
    openTelemetry: false,
    ...options,
  });

test('with the right certificates and the right key everything works', async () => {
  await using client = secure({ apiKey: key });
  await client.createQueue('secure');
  const id = await client.enqueue('secure', {}, 'x');
  await using consumer = client.consume('secure');
  const [message] = await consumer.take(1);
  assert.equal(message?.id, id);
  await message.ack();
});

test('a key is read from a file, and read again when the file has changed', async () => {
  const path = join(folder, 'api.key');
  writeFileSync(path, `${key.slice(0, -4)}0000\n`);
  await using client = secure({ apiKeyFile: path });
  await assert.rejects(client.listQueues(), UnauthenticatedError);
  writeFileSync(path, `${key}\n\n`);
  assert.ok((await client.listQueues()).length >= 0);
});

test('a wrong key is refused at once, whatever is called, and however many calls wait', async () => {
  await using client = secure({ apiKey: `${key.slice(0, -4)}0000`, timeoutMs: 20_000 });
  const began = Date.now();
  const calls = Array.from({ length: 20 }, () => client.enqueue('secure', {}, Buffer.alloc(500_000)));
  const ended = await Promise.allSettled(calls);
  assert.ok(ended.every((each) => each.status === 'rejected' && each.reason instanceof UnauthenticatedError));
  await assert.rejects(client.listQueues(), UnauthenticatedError);
  await assert.rejects(client.consume('secure').next(), UnauthenticatedError);
  await assert.rejects(client.ack('secure', 'x'), UnauthenticatedError);
  assert.ok(Date.now() - began < 5000);
});

test('without a connection that is secure there is none', async () => {
  const stranger = new Authority(folder, 'stranger');
  const wrong = [
    { tls: { ca: stranger.ca, ...shown } },
    { tls: { ca: authority.ca, ...shown, serverName: 'other.example' } },
    { tls: { ca: authority.ca } },
    { tls: { ca: authority.ca, ...stranger.sign('client', 'clientAuth') } },
  ];
  for (const options of wrong) {
    await using client = secure({ ...options, timeoutMs: 700 });
    await assert.rejects(client.enqueue('secure'), UnavailableError, JSON.stringify(options));
    await assert.rejects(client.listQueues(), UnavailableError, JSON.stringify(options));
  }
});

test('certificates are read again when they were replaced', async () => {
  const stranger = new Authority(folder, 'other').sign('client', 'clientAuth');
  const renewed = { cert: join(folder, 'renewed.pem'), key: join(folder, 'renewed.key') };
  const install = ({ cert, key: clientKey }: Pair): void => {
    copyFileSync(cert, renewed.cert);
    copyFileSync(clientKey, renewed.key);
  };
  install(stranger);
  await using client = secure({ tls: { ca: authority.ca, ...renewed }, apiKey: key });
  await assert.rejects(client.listQueues({ timeoutMs: 500 }), UnavailableError);
  install(shown);
  assert.ok(Array.isArray(await client.listQueues()));
});

test('a server with TLS tells a client without TLS what is wrong', async () => {
  await using client = secure({ tls: false });
  await assert.rejects(client.enqueue('secure'), /TLS/);
});

test('settings that cannot work are told when the client is made', () => {
  const wrong = [
    () => secure({ tls: { ca: authority.ca, cert: shown.cert } }),
    () => secure({ apiKey: 'two words' }),
    () => secure({ apiKeyFile: join(folder, 'missing') }),
    () => secure({ apiKey: 'x', apiKeyFile: 'y' }),
    () => new Client('localhost'),
    () => new Client([]),
  ];
  for (const make of wrong) assert.throws(make, InvalidArgumentError);
});
