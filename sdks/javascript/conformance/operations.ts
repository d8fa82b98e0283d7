import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  Client,
  ClientClosedError,
  type ConsumeMessage,
  type Consumer,
  EnqueueManyError,
  type EnqueueResult,
  type OutgoingMessage,
  type QueueSettings,
  type TlsOptions,
} from '../src/index.js';
import { lifecycle, latency, produce, work } from './loads.js';

// What a request has depends on its operation; the protocol is in sdks/conformance/DRIVER.md.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Table = Record<string, any>;
type Describe = (error: unknown) => Table;
/** What it gives is the answer; nothing is an empty one. */
type Operation = (request: Table, describe: Describe) => unknown;

export class UnsupportedOp extends Error {}

/** Clients and consumers by name, and one function for each operation. */
export class Driver {
  readonly #clients = new Map<string, Client>();
  readonly #consumers = new Map<string, Consumer>();
  readonly #held = new Map<string, ConsumeMessage>();

  async run(request: Table, describe: Describe): Promise<unknown> {
    const operation = Object.hasOwn(this.#operations, request.op)
      ? this.#operations[request.op as string]
      : undefined;
    if (operation === undefined) throw new UnsupportedOp(`unknown operation ${request.op}`);
    return await operation(request, describe);
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) await client.close();
  }

  #client({ client = 'c' }: Table): Client {
    const found = this.#clients.get(client);
    if (found === undefined) throw new ClientClosedError(`there is no client ${client}`, { kind: 'CLOSED' });
    return found;
  }

  #message({ message }: Table): ConsumeMessage {
    const held = this.#held.get(message);
    if (held === undefined) throw new Error(`no message ${message} is held`);
    return held;
  }

  #consumer({ consumer }: Table): Consumer {
    const found = this.#consumers.get(consumer);
    if (found === undefined) throw new Error(`there is no consumer ${consumer}`);
    return found;
  }

  readonly #operations: Record<string, Operation> = {
    hello: () => ({
      sdk: 'javascript',
      version: version('../../package.json'),
      language: `Node.js ${process.versions.node}`,
      grpc: version('@grpc/grpc-js/package.json'),
    }),
    connect: async ({ client = 'c', addresses, tls, api_key }) => {
      const before = this.#clients.get(client);
      this.#clients.set(
        client,
        new Client(addresses, { tls: tlsOf(tls), apiKey: api_key, openTelemetry: false }),
      );
      await before?.close();
    },
    close: async (request) => {
      const client = this.#client(request);
      await client.close();
    },
    describe: async (request) => {
      const { version, limits } = await this.#client(request).describe(times(request));
      return { version, max_payload_bytes: limits?.maxPayloadBytes };
    },

    create_queue: (request) =>
      this.#client(request).createQueue(request.queue, settingsOf(request.settings), times(request)),
    delete_queue: async (request) => {
      await this.#client(request).deleteQueue(request.queue, { ...times(request), force: true });
    },
    list_queues: async (request) => ({
      queues: (await this.#client(request).listQueues(times(request))).map((queue) => queue.name),
    }),
    stats: async (request) => {
      const client = this.#client(request);
      const { summary } = await client.queueStats(request.queue, times(request));
      const dead = summary.deadLetterQueue;
      const letters = dead === '' ? 0 : (await client.queueStats(dead, times(request))).summary.depth;
      return { depth: summary.depth, in_flight: summary.inFlight, dead_letters: letters };
    },
    set_config: (request) => this.#client(request).setConfig(request.key, request.value, times(request)),
    get_config: async (request) => ({
      value: await this.#client(request).getConfig(request.key, times(request)),
    }),
    delete_config: async (request) => {
      await this.#client(request).deleteConfig(request.key, times(request));
    },
    list_config: async (request) => ({
      entries: Object.fromEntries(await this.#client(request).listConfig(request.prefix, times(request))),
    }),

    enqueue: (request) =>
      this.#client(request).enqueueMessage(request.queue, outgoing(request), times(request)),
    enqueue_many: async (request, describe) => {
      const messages = (request.messages as Table[]).map(outgoing);
      let results: readonly EnqueueResult[];
      try {
        results = await this.#client(request).enqueueMany(request.queue, messages, times(request));
      } catch (error) {
        if (!(error instanceof EnqueueManyError)) throw error;
        ({ results } = error);
      }
      return {
        results: results.map((each) => (each.error === undefined ? each : { error: describe(each.error) })),
      };
    },
    produce: (request, describe) => produce(this.#client(request), request, describe),
    cancel_enqueue: (request) => {
      const signal = AbortSignal.timeout(request.after_ms);
      const given = { ...times(request), signal };
      return this.#client(request).enqueueMessage(request.queue, outgoing(request), given);
    },

    consume: (request) => {
      const consumer = this.#client(request).consume(request.queue, {
        maxInFlight: request.max_in_flight,
      });
      this.#consumers.set(request.consumer, consumer);
    },
    next: async (request) => {
      const messages = await this.#consumer(request).take(request.count, times(request));
      for (const message of messages) this.#held.set(message.id, message);
      return { messages: messages.map(incoming) };
    },
    stop: (request) => this.#consumer(request).stop(),
    work: (request) => work(this.#client(request), request),

    ack: (request) => this.#message(request).ack(times(request)),
    nack: (request) =>
      this.#message(request).nack(request.error, { ...times(request), delayMs: request.delay_ms }),
    release: (request) => this.#message(request).release(times(request)),
    reject: (request) => this.#message(request).reject(request.error, times(request)),
    extend: (request) => this.#message(request).extend(request.extend_ms, times(request)),
    ack_by_id: (request) => this.#client(request).ack(request.queue, request.message, times(request)),
    nack_by_id: (request) =>
      this.#client(request).nack(request.queue, request.message, request.error, times(request)),

    explain: async (request) => {
      const { reasons } = await this.#client(request).explain(
        request.queue,
        { messageId: request.message },
        times(request),
      );
      return { reason: reasons[0]?.code.toUpperCase() ?? '' };
    },
    redrive: async (request) => ({
      count: await this.#client(request).redrive(request.queue, times(request)),
    }),
    peek: async (request) => {
      const page = await this.#client(request).peek(request.queue, {
        ...times(request),
        limit: request.count,
      });
      return { ids: page.messages.map((message) => message.id) };
    },

    resources: async () => {
      await sleep(0);
      const open = process.getActiveResourcesInfo();
      const threads = readdirSync('/proc/self/task').length;
      return { threads, tasks: open.length, handles: readdirSync('/proc/self/fd').length };
    },
    latency: (request) => latency(this.#client(request), request),
    lifecycle: (request, describe) => lifecycle(this.#client(request), request, describe),
  };
}

function version(of: string): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  return (require(of) as { version: string }).version;
}

function times({ timeout_ms }: Table): { timeoutMs?: number } {
  return { timeoutMs: timeout_ms };
}

function tlsOf(tls: Table | undefined): TlsOptions | false {
  return tls === undefined || tls === null
    ? false
    : { ca: tls.ca, cert: tls.cert, key: tls.key, serverName: tls.server_name };
}

/** Names of settings as in proto JSON, snake_case, as the SDK has them. */
function settingsOf(settings: Table = {}): QueueSettings {
  const named = Object.entries(settings).map(([name, value]) => {
    const camel = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    if (name === 'throttle_headers') return [camel, value.names];
    if (name === 'overflow') return [camel, value.replace('OVERFLOW_', '').toLowerCase()];
    return [camel, value];
  });
  return Object.fromEntries(named) as QueueSettings;
}

function outgoing({ headers, payload = '', options = {} }: Table): OutgoingMessage {
  const { dedup_key, delay_ms, priority } = options ?? {};
  return {
    headers,
    payload: Buffer.from(payload, 'base64'),
    dedupKey: dedup_key,
    delayMs: delay_ms,
    priority,
  };
}

function incoming(message: ConsumeMessage): Table {
  return {
    id: message.id,
    queue: message.queue,
    headers: message.headers,
    payload: message.payload.toString('base64'),
    fairness_key: message.fairnessKey,
    attempt_count: message.attemptCount,
    lease_id: message.leaseId,
  };
}
