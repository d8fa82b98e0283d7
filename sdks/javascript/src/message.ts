import type { CallOptions } from './connection.js';
import { called } from './errors.js';
import { Isolation, type Message } from './generated/fila/v1/messages.js';
import type { Settlement, Settler } from './settler.js';
import type { Tracing } from './tracing.js';

export interface NackOptions extends CallOptions {
  /** The message is not delivered again before this many milliseconds have passed. */
  delayMs?: number;
}

/** A message that this client holds, until it settles it. */
export class ConsumeMessage {
  readonly id: string;
  /** The queue that the message is in. */
  readonly queue: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
  readonly fairnessKey: string;
  /** How many attempts failed before this one. */
  readonly attemptCount: number;
  readonly leaseId: string;
  readonly priority: number;
  readonly weight: number;
  readonly throttleKeys: readonly string[];
  readonly enqueuedAt: Date | undefined;
  /** It may have killed its consumer, so it is delivered alone. */
  readonly isolated: boolean;
  readonly #settler: Settler;
  readonly #tracing: Tracing;

  /** @internal */
  constructor(queue: string, message: Message, settler: Settler, tracing: Tracing) {
    const { metadata } = message;
    this.id = message.id;
    this.queue = queue;
    this.headers = Object.fromEntries(message.headers);
    this.payload = message.payload;
    this.fairnessKey = metadata?.fairnessKey ?? '';
    this.attemptCount = metadata?.attemptCount ?? 0;
    this.leaseId = metadata?.leaseId ?? '';
    this.priority = metadata?.priority ?? 0;
    this.weight = metadata?.weight ?? 0;
    this.throttleKeys = metadata?.throttleKeys ?? [];
    this.enqueuedAt = message.timestamps?.enqueuedAt;
    this.isolated =
      (metadata?.isolation ?? Isolation.ISOLATION_UNSPECIFIED) !== Isolation.ISOLATION_UNSPECIFIED;
    this.#settler = settler;
    this.#tracing = tracing;
  }

  /** Removes the message for good. */
  ack(options?: CallOptions): Promise<void> {
    return this.#settle({ type: 'ack' }, options);
  }

  /** The message has failed: it is delivered again, or becomes a dead letter. */
  nack(error = '', options: NackOptions = {}): Promise<void> {
    const { delayMs = 0 } = options;
    return this.#settle({ type: 'nack', error, delayMs, release: false, deadLetter: false }, options);
  }

  /** Gives the message back without counting an attempt. */
  release(options: NackOptions = {}): Promise<void> {
    const { delayMs = 0 } = options;
    return this.#settle({ type: 'nack', error: '', delayMs, release: true, deadLetter: false }, options);
  }

  /** Moves the message to the dead-letter queue. */
  reject(error = '', options?: CallOptions): Promise<void> {
    return this.#settle({ type: 'nack', error, delayMs: 0, release: false, deadLetter: true }, options);
  }

  /** The lease ends `extendMs` from now; 0 means the queue's visibility timeout. */
  extend(extendMs = 0, options?: CallOptions): Promise<void> {
    return this.#settle({ type: 'extend', extendMs }, options);
  }

  /** Runs `handler` in a span that continues the producer's trace. Without OpenTelemetry it just runs it. */
  withSpan<T>(handler: () => T): T {
    return this.#tracing.process(this, handler);
  }

  async #settle(op: Settlement['op'], options?: CallOptions): Promise<void> {
    const { queue, leaseId, id } = this;
    await called(() => this.#settler.settle({ queue, leaseId, ids: [id], op }, options));
  }
}
