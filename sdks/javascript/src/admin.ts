import {
  type Explanation,
  type MessageFilter,
  type PeekPage,
  type QueueInfo,
  type QueueSettings,
  type QueueStats,
  throttleText,
  type ThrottleLimit,
  toConfig,
  toExplanation,
  toFilter,
  toPeeked,
  toSettings,
  toStats,
} from './admin-types.js';
import { text, whole } from './arguments.js';
import type { CallOptions, Connection } from './connection.js';
import { QueueAlreadyExistsError, unexpectedAnswer } from './errors.js';
import { FilaAdminService as admin, KeyOrder } from './generated/fila/v1/admin.js';
import { type DescribeResponse, FilaServiceService as service } from './generated/fila/v1/service.js';

const THROTTLE = 'throttle.';
/** Messages of one bounded call. The broker also ends a call by itself when it takes long. */
const AT_ONCE = 10_000;

export interface PeekOptions extends MessageFilter, CallOptions {
  /** The page size, up to 1000. */
  limit?: number;
  newestFirst?: boolean;
  /** How many bytes of each payload to return. */
  payloadBytes?: number;
  /** The cursor of an earlier page: continue behind it. */
  cursor?: string;
}

/** Which messages to move or to remove. `timeoutMs` is for each of the bounded calls that this takes. */
export interface SweepOptions extends MessageFilter, CallOptions {
  /** The most messages. Absent: all. */
  count?: number;
  /** Only count them. */
  dryRun?: boolean;
}

/** A bounded call: how many to take at most, where to go on, and whether no other call follows. */
type Step = (
  count: number,
  cursor: string,
  final: boolean,
  again: boolean,
) => Promise<{ done: number; cursor: string }>;

/** The calls about queues, configuration and dead letters. `Client` has them. */
export abstract class AdminCalls {
  protected abstract readonly connection: Connection;

  /** What the server is: version, features, limits. */
  describe(options: CallOptions = {}): Promise<DescribeResponse> {
    return this.connection.call(service.describe, {}, options, true);
  }

  /** Creates a queue and its dead-letter queue. */
  async createQueue(name: string, settings: QueueSettings = {}, options: CallOptions = {}): Promise<void> {
    // Sent again after a lost answer, it would be refused although it was done.
    await this.connection.call(
      admin.createQueue,
      { name, config: toConfig(settings), parts: 0 },
      options,
      false,
    );
  }

  /** Creates a queue unless it exists. Resolves to whether it was created. An existing queue keeps its settings. */
  async ensureQueue(name: string, settings: QueueSettings = {}, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.connection.call(
        admin.createQueue,
        { name, config: toConfig(settings), parts: 0 },
        options,
        true,
      );
    } catch (error) {
      if (error instanceof QueueAlreadyExistsError) return false;
      throw error;
    }
    return true;
  }

  /** Changes settings of a queue. Resolves to all its settings. */
  async updateQueue(
    queue: string,
    settings: QueueSettings,
    options: CallOptions = {},
  ): Promise<QueueSettings> {
    const request = { queue, config: toConfig(settings) };
    const { config } = await this.connection.call(admin.updateQueue, request, options, true);
    return toSettings(config ?? {});
  }

  /** Removes a queue, its dead-letter queue and all their messages. Dead letters are kept unless `force` is set. */
  async deleteQueue(queue: string, options: CallOptions & { force?: boolean } = {}): Promise<number> {
    const { force = false } = options;
    return (await this.connection.call(admin.deleteQueue, { queue, force }, options, false)).messagesDeleted;
  }

  /** All queues, ordered by name. */
  async listQueues(options: CallOptions = {}): Promise<QueueInfo[]> {
    const pages = await everyPage((cursor) =>
      this.connection.call(admin.listQueues, { limit: 0, cursor }, options, true),
    );
    return pages.flatMap((page) => page.queues);
  }

  /** The figures of a queue, with those of its `maxKeys` longest fairness keys. */
  async queueStats(queue: string, options: CallOptions & { maxKeys?: number } = {}): Promise<QueueStats> {
    const { maxKeys = 0 } = options;
    const request = { queue, maxKeys, sort: KeyOrder.KEY_ORDER_PENDING, offset: 0, keyPrefix: '' };
    return toStats(await this.connection.call(admin.getStats, request, options, true));
  }

  /** Stops delivery from a queue until it is resumed. */
  async pauseQueue(queue: string, options: CallOptions = {}): Promise<void> {
    await this.connection.call(admin.pauseQueue, { queue }, options, true);
  }

  async resumeQueue(queue: string, options: CallOptions = {}): Promise<void> {
    await this.connection.call(admin.resumeQueue, { queue }, options, true);
  }

  /** Sets an entry of the runtime configuration. */
  async setConfig(key: string, value: string, options: CallOptions = {}): Promise<void> {
    await this.connection.call(admin.setConfig, { key, value }, options, true);
  }

  /** The value of an entry. Rejects with `ConfigNotFoundError` when there is none. */
  async getConfig(key: string, options: CallOptions = {}): Promise<string> {
    return (await this.connection.call(admin.getConfig, { key }, options, true)).value;
  }

  /** All entries whose keys begin with `prefix`. */
  async listConfig(prefix = '', options: CallOptions = {}): Promise<Map<string, string>> {
    const pages = await everyPage((cursor) =>
      this.connection.call(admin.listConfig, { prefix, limit: 0, cursor }, options, true),
    );
    return new Map(pages.flatMap((page) => page.entries.map(({ key, value }) => [key, value])));
  }

  /** Removes an entry. Resolves to whether it existed. */
  async deleteConfig(key: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.connection.call(admin.deleteConfig, { key }, options, true)).existed;
  }

  /** Limits what is delivered of a throttle key, such as "provider:aws". */
  async setThrottle(key: string, limit: ThrottleLimit, options: CallOptions = {}): Promise<void> {
    await this.setConfig(THROTTLE + text(key, 'key'), throttleText(limit), options);
  }

  /** Removes the limit of a throttle key. Resolves to whether there was one. */
  async removeThrottle(key: string, options: CallOptions = {}): Promise<boolean> {
    return this.deleteConfig(THROTTLE + text(key, 'key'), options);
  }

  /** Why a message is still waiting: this one, the first one of a fairness key, or the next one of all. */
  async explain(
    queue: string,
    subject: { messageId?: string; fairnessKey?: string } = {},
    options: CallOptions = {},
  ): Promise<Explanation> {
    return toExplanation(await this.connection.call(admin.explain, { queue, ...subject }, options, true));
  }

  /** Looks at messages without taking them, a page at a time. */
  async peek(queue: string, options: PeekOptions = {}): Promise<PeekPage> {
    const { limit = 0, newestFirst = false, payloadBytes = 0, cursor = '' } = options;
    const filter = toFilter(options, 'limit', 'newestFirst', 'payloadBytes', 'cursor');
    const request = { queue, filter, limit, newestFirst, payloadBytes, cursor };
    const page = await this.connection.call(admin.peek, request, options, true);
    return { messages: page.messages.map((each) => toPeeked(queue, each)), cursor: page.cursor };
  }

  /** Moves dead letters back to the queue that they came from, oldest first. Resolves to how many. */
  async redrive(deadLetterQueue: string, options: SweepOptions = {}): Promise<number> {
    const { dryRun = false } = options;
    const fixed = {
      dlqQueue: deadLetterQueue,
      filter: toFilter(options, 'count', 'dryRun'),
      dryRun,
      bounded: true,
    };
    return sweep(options, async (count, cursor, final, again) => {
      const answer = await this.connection.call(
        admin.redrive,
        { ...fixed, count, cursor, final },
        options,
        again,
      );
      return { done: answer.redriven, cursor: answer.cursor };
    });
  }

  /** Removes messages for good, oldest first. A queue that is not a dead-letter queue needs `anyQueue`. */
  async purge(queue: string, options: SweepOptions & { anyQueue?: boolean } = {}): Promise<number> {
    const { dryRun = false, anyQueue = false } = options;
    const filter = toFilter(options, 'count', 'dryRun', 'anyQueue');
    const fixed = { queue, filter, dryRun, anyQueue, bounded: true };
    return sweep(options, async (count, cursor, final, again) => {
      const answer = await this.connection.call(
        admin.purge,
        { ...fixed, count, cursor, final },
        options,
        again,
      );
      return { done: answer.purged, cursor: answer.cursor };
    });
  }
}

/** All pages of a list. */
async function everyPage<P extends { cursor: string }>(read: (cursor: string) => Promise<P>): Promise<P[]> {
  const pages: P[] = [];
  let cursor = '';
  do {
    const page = await read(cursor);
    if (page.cursor !== '' && page.cursor === cursor) throw unexpectedAnswer('the list does not go on');
    pages.push(page);
    ({ cursor } = page);
  } while (cursor !== '');
  return pages;
}

/** Bounded calls, one after another, so that each is within the timeout. */
async function sweep({ count }: SweepOptions, step: Step): Promise<number> {
  if (count !== undefined) whole(count, 'count', 1); // to the broker, 0 means all
  let done = 0;
  let cursor = '';
  do {
    const left = count === undefined ? AT_ONCE : Math.min(AT_ONCE, count - done);
    // With a count, a call that is sent again after a lost answer could take more than that.
    const answer = await step(left, cursor, count === done + left, count === undefined);
    done += answer.done;
    ({ cursor } = answer);
  } while (cursor !== '' && (count === undefined || done < count));
  return done;
}
