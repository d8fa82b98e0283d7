import {
  type ExplainResponse,
  type GetStatsResponse,
  Hook,
  HookFailureCause,
  type HookStats as WireHookStats,
  MessageState,
  type MessageFilter as WireFilter,
  Overflow,
  type PeekedMessage as WirePeeked,
  QueueConfig,
  type QueueSummary,
  WaitCause,
  type WaitReason as WireReason,
  type WaitStats as WireWaitStats,
} from './generated/fila/v1/admin.js';
import {
  AttemptEnd,
  DeadLetterReason,
  type FailedAttempt as WireAttempt,
} from './generated/fila/v1/messages.js';
import { invalid, list, onlyNames, text, whole } from './arguments.js';
import { checkHeaders } from './encoding.js';

/** The settings of a queue. One that is left out takes the broker's default, or stays as it is. */
export interface QueueSettings extends Omit<QueueConfig, 'throttleHeaders' | 'overflow'> {
  /** Each of these headers gives a message the throttle key "<header>:<value>". */
  throttleHeaders?: readonly string[] | undefined;
  /** What a full queue does: refuse messages, or move the oldest ones to the dead-letter queue. */
  overflow?: 'reject' | 'drop_oldest' | undefined;
}

/** The figures of a queue in a list. */
export type QueueInfo = QueueSummary;

/** One hook of a queue. */
export interface HookStats extends Omit<WireHookStats, 'hook' | 'failures'> {
  /** on_enqueue or on_failure. */
  hook: string;
  /** How often it failed, by cause: error, timeout, memory, bad_return. */
  failures: Record<string, number>;
}

/** How long messages waited before delivery, and for what. */
export interface WaitStats extends Omit<WireWaitStats, 'throttles'> {
  /** `throttle` of the parts by throttle key. */
  throttles: Record<string, number>;
}

/** What the broker tells about one queue. */
export interface QueueStats extends Omit<GetStatsResponse, 'summary' | 'config' | 'hooks' | 'waits'> {
  summary: QueueInfo;
  /** All settings, defaults included. */
  settings: QueueSettings;
  hooks: HookStats[];
  waits: WaitStats | undefined;
}

/** One reason why a message waits. `code` is leased, delayed, paused, no_consumer, no_credit, throttled and so on. */
export interface WaitReason extends Omit<WireReason, 'code' | 'numbers'> {
  code: string;
  numbers: Record<string, number>;
}

/** Why a message is still waiting. `state` is ready, delayed or leased. */
export interface Explanation extends Omit<ExplainResponse, 'state' | 'reasons'> {
  state: string;
  /** In the order in which the message must pass them. Empty when it is being delivered now. */
  reasons: WaitReason[];
}

/** One failed attempt. `end` is nacked, expired, returned, lost or lost_alone. */
export interface FailedAttempt {
  attempt: number;
  failedAt: Date | undefined;
  end: string;
  error: string;
}

/** Where a dead letter comes from, and why it is one: max_attempts, on_failure, rejected, max_depth or max_bytes. */
export interface DeadLetter {
  sourceQueue: string;
  diedAt: Date | undefined;
  reason: string;
  attempts: FailedAttempt[];
}

/** A message as it is in its queue. It was not taken, so it cannot be settled. */
export interface PeekedMessage {
  id: string;
  queue: string;
  headers: Record<string, string>;
  /** Its first `payloadBytes` bytes. */
  payload: Buffer;
  payloadSize: number;
  fairnessKey: string;
  attemptCount: number;
  priority: number;
  weight: number;
  throttleKeys: readonly string[];
  enqueuedAt: Date | undefined;
  /** ready, delayed or leased. */
  state: string;
  /** When its delay or its lease ends. */
  until: Date | undefined;
  /** Of a message that is not a dead letter: its last failed attempts, oldest first. */
  attempts: FailedAttempt[];
  deadLetter: DeadLetter | undefined;
}

export interface PeekPage {
  messages: PeekedMessage[];
  /** The cursor to continue with. Empty at the end. */
  cursor: string;
}

/** Selects messages: those that match every given condition. */
export interface MessageFilter {
  /** The message has each of these headers, with this value; null means any value. */
  headers?: Readonly<Record<string, string | null>>;
  fairnessKey?: string;
  /** One of its failed attempts has this text in its error. */
  error?: string;
  minAgeMs?: number;
  maxAgeMs?: number;
  states?: readonly ('ready' | 'delayed' | 'leased')[];
  messageIds?: readonly string[];
}

/** What a throttle key allows. */
export interface ThrottleLimit {
  /** Tokens a second. */
  rate?: number;
  /** Tokens that can be saved up. */
  burst?: number;
  /** Messages that consumers hold at one time. */
  maxInFlight?: number;
}

type Numbers = Record<string | number, string | number>;

/** The name of a number of an enum, without its prefix. A number of a later server stays a number. */
function nameOf(names: Numbers, prefix: string, number: number): string {
  return String(names[number] ?? number)
    .replace(prefix, '')
    .toLowerCase();
}

function numberOf(names: Numbers, prefix: string, name: string, what: string): number {
  const number = names[prefix + text(name, what).toUpperCase()];
  if (typeof number === 'number') return number;
  throw invalid(`${what} cannot be ${JSON.stringify(name)}`);
}

const SETTINGS: ReadonlySet<string> = new Set(Object.keys(QueueConfig.create()));

export function toConfig(settings: QueueSettings): QueueConfig {
  onlyNames(settings, SETTINGS, 'setting');
  const { throttleHeaders, overflow, ...others } = settings;
  return {
    ...others,
    throttleHeaders:
      throttleHeaders === undefined ? undefined : { names: list(throttleHeaders, 'throttleHeaders') },
    overflow: overflow === undefined ? undefined : numberOf(Overflow, 'OVERFLOW_', overflow, 'overflow'),
  };
}

export function toSettings({ throttleHeaders, overflow, ...others }: QueueConfig): QueueSettings {
  const named = overflow === undefined ? undefined : nameOf(Overflow, 'OVERFLOW_', overflow);
  return {
    ...others,
    throttleHeaders: throttleHeaders?.names ?? [],
    overflow: named as QueueSettings['overflow'],
  };
}

export function toStats({ summary, config, hooks, waits, ...others }: GetStatsResponse): QueueStats {
  return {
    ...others,
    summary: summary as QueueInfo,
    settings: toSettings(config ?? {}),
    waits: waits === undefined ? undefined : { ...waits, throttles: Object.fromEntries(waits.throttles) },
    hooks: hooks.map(({ hook, failures, ...rest }) => ({
      ...rest,
      hook: nameOf(Hook, 'HOOK_', hook),
      failures: Object.fromEntries(
        failures.map(({ cause, count }) => [nameOf(HookFailureCause, 'HOOK_FAILURE_CAUSE_', cause), count]),
      ),
    })),
  };
}

export function toExplanation({ state, reasons, ...others }: ExplainResponse): Explanation {
  return {
    ...others,
    state: nameOf(MessageState, 'MESSAGE_STATE_', state),
    reasons: reasons.map(({ code, numbers, ...rest }) => ({
      ...rest,
      numbers: Object.fromEntries(numbers),
      code: nameOf(WaitCause, 'WAIT_CAUSE_', code),
    })),
  };
}

const toAttempt = ({ attempt, failedAt, kind, error }: WireAttempt): FailedAttempt => ({
  attempt,
  failedAt,
  end: nameOf(AttemptEnd, 'ATTEMPT_END_', kind),
  error,
});

export function toPeeked(queue: string, peeked: WirePeeked): PeekedMessage {
  const { message } = peeked;
  const metadata = message?.metadata;
  const dead = metadata?.deadLetter;
  return {
    id: message?.id ?? '',
    queue,
    headers: Object.fromEntries(message?.headers ?? []),
    payload: message?.payload ?? Buffer.alloc(0),
    payloadSize: peeked.payloadSize,
    fairnessKey: metadata?.fairnessKey ?? '',
    attemptCount: metadata?.attemptCount ?? 0,
    priority: metadata?.priority ?? 0,
    weight: metadata?.weight ?? 0,
    throttleKeys: metadata?.throttleKeys ?? [],
    enqueuedAt: message?.timestamps?.enqueuedAt,
    state: nameOf(MessageState, 'MESSAGE_STATE_', peeked.state),
    until: peeked.until,
    attempts: peeked.attempts.map(toAttempt),
    deadLetter:
      dead === undefined
        ? undefined
        : {
            sourceQueue: dead.sourceQueue,
            diedAt: dead.diedAt,
            reason: nameOf(DeadLetterReason, 'DEAD_LETTER_REASON_', dead.reason),
            attempts: dead.attempts.map(toAttempt),
          },
  };
}

/** What selects messages, and how a call is made. */
const FILTERS = ['headers', 'fairnessKey', 'error', 'minAgeMs', 'maxAgeMs', 'states', 'messageIds'];
const CALL = ['timeoutMs', 'signal'];

/** `others` are the names of the call's own options. */
export function toFilter(filter: MessageFilter, ...others: readonly string[]): WireFilter {
  onlyNames(filter, new Set([...FILTERS, ...CALL, ...others]), 'option');
  const {
    headers = {},
    fairnessKey,
    error = '',
    minAgeMs = 0,
    maxAgeMs = 0,
    states = [],
    messageIds,
  } = filter;
  checkHeaders(headers);
  const ids = messageIds === undefined ? undefined : list(messageIds, 'messageIds');
  return {
    headers: Object.entries(headers).map(([name, value]) => {
      return { name, value: value === null ? undefined : text(value, `header ${name}`) };
    }),
    fairnessKey: fairnessKey === undefined ? undefined : text(fairnessKey, 'fairnessKey'),
    error: text(error, 'error'),
    minAgeMs: whole(minAgeMs, 'minAgeMs'),
    maxAgeMs: whole(maxAgeMs, 'maxAgeMs'),
    states: list(states, 'states').map((state) => numberOf(MessageState, 'MESSAGE_STATE_', state, 'a state')),
    // An empty list selects no message. To the broker it would mean all.
    messageIds: ids?.length === 0 ? [''] : (ids ?? []).map((id) => text(id, 'an id of messageIds')),
  };
}

export function throttleText({ rate, burst, maxInFlight }: ThrottleLimit): string {
  const parts = Object.entries({ rate, burst, max_in_flight: maxInFlight });
  return parts.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`])).join(',');
}
