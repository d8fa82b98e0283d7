import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PROGRAM = process.env.FILA_SERVER ?? resolve('../../.venv/bin/fila-server');
const START_MS = 30_000;

/** A real server on a free port of loopback, with a data folder of its own, that can be killed and started again. */
export class Server {
  readonly address: string;
  readonly folder = mkdtempSync(join(tmpdir(), 'fila-js-'));
  #process: ChildProcess | undefined;

  private constructor(
    readonly port: number,
    config: string,
  ) {
    this.address = `127.0.0.1:${port}`;
    writeFileSync(join(this.folder, 'fila.toml'), `[log]\nlevel = "warning"\n${config}`);
  }

  static async start(config = ''): Promise<Server> {
    const server = new Server(await freePort(), config);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FILA_')));
    const args = ['--config', 'fila.toml', '--listen', this.address, '--data-dir', 'data'];
    const child = spawn(PROGRAM, args, { cwd: this.folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr.on('data', (data: Buffer) => (log += data.toString()));
    this.#process = child;
    const deadline = Date.now() + START_MS;
    while (!(await accepts(this.port))) {
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`the server did not start\n${log}`);
      await sleep(20);
    }
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The first key. Calls need one from then on. */
  initKeys(tls: { ca: string; cert: string; key: string }): string {
    const secured = ['--tls-ca', tls.ca, '--tls-cert', tls.cert, '--tls-key', tls.key];
    const args = ['--addr', `localhost:${this.port}`, ...secured, 'auth', 'init'];
    return execFileSync(join(dirname(PROGRAM), 'fila'), args, { encoding: 'utf8', stdio: 'pipe' }).trim();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
}

export async function freePort(): Promise<number> {
  const holder = createServer();
  holder.listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  holder.close();
  await once(holder, 'close');
  if (address === null || typeof address === 'string') throw new Error('there is no port');
  return address.port;
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Waits until the condition holds. */
export async function eventually(condition: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (const deadline = Date.now() + ms; !(await condition()); await sleep(20)) {
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${condition.toString()}`);
  }
}
