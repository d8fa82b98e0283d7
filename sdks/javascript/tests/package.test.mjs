// The package as programs get it: built, by its name, as ES modules and as CommonJS.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import * as esm from '@fila/client';

import { Server } from '../build/tests/support/server.js';

const require = createRequire(import.meta.url);
const cjs = require('@fila/client');
const run = promisify(execFile);

let server;
before(async () => {
  server = await Server.start();
});
after(() => server.stop());

test('ES modules and CommonJS get the same names and the same classes', () => {
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort());
  for (const name of Object.keys(cjs)) assert.equal(esm[name], cjs[name], name);
  assert.ok(new cjs.QueueFullError('full') instanceof esm.OverloadedError);
});

test('all four operations work', async () => {
  const { Client, QueueNotFoundError } = esm;
  const client = new Client(server.address);
  await client.createQueue('four', { maxAttempts: 5 });
  const id = await client.enqueue('four', { a: 'b' }, 'payload');
  const consumer = client.consume('four');
  const first = await consumer.next();
  assert.equal(first.value.id, id);
  await client.nack('four', id, 'once more');
  const second = await consumer.next();
  assert.equal(second.value.attemptCount, 1);
  await client.ack('four', id);
  await consumer.stop();
  await assert.rejects(client.enqueue('nowhere'), QueueNotFoundError);
  await client.close();
});

test('a program that has OpenTelemetry sends the context of its span, from the first message on', async () => {
  const otel = require('@opentelemetry/api');
  const span = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: otel.TraceFlags.SAMPLED };
  const current = otel.trace.setSpanContext(otel.ROOT_CONTEXT, span);
  otel.context.setGlobalContextManager({
    active: () => current,
    with: (_, run, self, ...given) => run.apply(self, given),
    bind: (_, target) => target,
    enable: () => otel.context,
    disable: () => otel.context,
  });
  const client = new esm.Client(server.address);
  try {
    await client.createQueue('traced');
    await client.enqueue('traced', { own: 'header' });
    const [message] = await client.consume('traced').take(1);
    const traceparent = `00-${span.traceId}-${span.spanId}-01`;
    assert.deepEqual(message.headers, { own: 'header', traceparent });
  } finally {
    otel.context.disable();
    await client.close();
  }
});

/** A program in a folder of its own that has the packed package and what that depends on, but no OpenTelemetry. */
async function program() {
  const folder = mkdtempSync(join(tmpdir(), 'fila-js-program-'));
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const [{ filename, files }] = JSON.parse((await run('npm', args)).stdout);
  await run('tar', ['-xzf', join(folder, filename), '-C', folder]);
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync('node_modules')) {
    const isOther = !name.startsWith('.') && !['@fila', '@opentelemetry'].includes(name);
    if (isOther) symlinkSync(resolve('node_modules', name), join(modules, name));
  }
  cpSync(join(folder, 'package'), join(modules, '@fila/client'), { recursive: true });
  return { folder, files: files.map(({ path }) => path) };
}

const USES = `
import { Client, type ConsumeMessage, FilaError, type Kind } from '@fila/client';
export async function main(): Promise<void> {
  await using client = new Client(['a:1', 'b:1'], { timeoutMs: 1, tls: { ca: 'ca.pem' } });
  const id: string = await client.enqueue('q', { a: 'b' }, Buffer.from('x'), { signal: AbortSignal.timeout(1) });
  for await (const message of client.consume('q', { maxInFlight: 1 })) {
    const same: ConsumeMessage = message;
    const text: string = same.payload.toString() + same.fairnessKey + same.attemptCount + id;
    await same.nack(text);
  }
  const { summary, settings } = await client.queueStats('q');
  const depth: number = summary.depth + (settings.maxDepth ?? 0);
  // @ts-expect-error: there is no such option
  await client.createQueue('q', { visibilityTimeout: depth });
  // @ts-expect-error: what is no payload
  await client.enqueue('q', {}, { id: 1 });
  await client.ack('q', id).catch((error: unknown) => {
    const kind: Kind | undefined = error instanceof FilaError ? error.kind : undefined;
    if (kind === 'QUEUE_NOT_FOUND') throw error;
  });
}
`;

test('what is packed is complete, and its types are found by programs of every kind', async () => {
  const { folder, files } = await program();
  try {
    assert.deepEqual(
      files.filter((path) => !path.startsWith('dist/')),
      ['LICENSE', 'README.md', 'package.json'],
    );
    assert.ok(
      files.every((path) => /^(LICENSE|README.md|package.json|.*\.(m?js|d\.m?ts|js\.map))$/.test(path)),
    );
    const options = '--noEmit --strict --types node --target es2022 --lib es2022,esnext.disposable'.split(
      ' ',
    );
    const compiler = resolve('node_modules/typescript/bin/tsc');
    for (const name of ['use.mts', 'use.cts', 'use.ts']) writeFileSync(join(folder, name), USES);
    for (const given of [
      ['--module', 'node16', 'use.mts', 'use.cts'],
      ['--module', 'esnext', '--moduleResolution', 'bundler', 'use.ts'],
    ]) {
      const checked = run(process.execPath, [compiler, ...options, ...given], { cwd: folder });
      await checked.catch(({ stdout }) => assert.fail(`${given.join(' ')}:\n${stdout}`));
    }
    const loads =
      "import('@fila/client').then((m) => console.log(m.Client === require('@fila/client').Client))";
    const { stdout } = await run(process.execPath, ['-e', loads], { cwd: folder });
    assert.equal(stdout, 'true\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const quickstart = /^## Quickstart\n+```js\n([^]*?)```/m.exec(readFileSync('README.md', 'utf8'))[1];

for (const [kind, code] of [
  ['mjs', quickstart],
  [
    'cjs',
    `(async () => {${quickstart.replace("import { Client } from '@fila/client'", "const { Client } = require('@fila/client')")}})();`,
  ],
]) {
  test(`the quickstart of the README runs, and its process ends by itself: ${kind}`, async () => {
    const file = `build/quickstart.${kind}`;
    writeFileSync(file, code.replace('localhost:5555', server.address));
    const { stdout } = await run(process.execPath, [file], { timeout: 20_000 });
    assert.match(stdout, /^enqueued [0-9a-f-]{36}\ngot one coffee for acme\n$/);
  });
}

test('the error table of the README has all errors, and no others', () => {
  const listed = [...readFileSync('README.md', 'utf8').matchAll(/^\| `(\w+Error)` +\|/gm)].map(
    (match) => match[1],
  );
  const exported = Object.keys(esm).filter((name) => name.endsWith('Error') && name !== 'FilaError');
  assert.deepEqual(listed.sort(), exported.sort());
});
