import { ErrorKind, type Error as WireError } from './generated/fila/v1/errors.js';

type NameOf<Wire> = Wire extends `ERROR_KIND_${infer Name}` ? Name : never;

/**
 * The name of a refusal: one of the contract's `ErrorKind` without its prefix, or what the SDK itself found:
 * `UNAVAILABLE`, `DEADLINE_EXCEEDED`, `CANCELLED`, `CLOSED`. A kind of a later server is `UNRECOGNIZED`.
 */
export type Kind =
  | NameOf<keyof typeof ErrorKind>
  | 'UNAVAILABLE'
  | 'DEADLINE_EXCEEDED'
  | 'CANCELLED'
  | 'CLOSED'
  | 'UNRECOGNIZED';

export interface ErrorDetails {
  kind?: Kind;
  retryable?: boolean;
  retryAfterMs?: number;
  owner?: string;
  cause?: unknown;
}

/** The base of all errors of the SDK. Programs go by `kind` or the class, people by the message. */
export class FilaError extends Error {
  readonly kind: Kind;
  /** Whether the same request may succeed later, though nobody changes anything. */
  readonly retryable: boolean;
  /** If retryable: how long to wait at least. 0 means that the caller chooses. */
  readonly retryAfterMs: number;
  /** The member of the cluster to ask instead, if the broker told it. */
  readonly owner: string;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.kind = details.kind ?? 'INTERNAL';
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs ?? 0;
    this.owner = details.owner ?? '';
  }
}

/** The queue does not exist. */
export class QueueNotFoundError extends FilaError {}
/** A queue of that name exists. */
export class QueueAlreadyExistsError extends FilaError {}
/** No message is held under that lease: it expired, was settled before, or never existed. */
export class MessageNotFoundError extends FilaError {}
/** The runtime configuration has no such entry. */
export class ConfigNotFoundError extends FilaError {}
/** An argument is not valid. */
export class InvalidArgumentError extends FilaError {}
/** The request is valid, but not in the present state. */
export class FailedPreconditionError extends FilaError {}
/** A later start of the producer or reader is at work. */
export class FencedError extends FailedPreconditionError {}
/** Something is larger than its limit, or there are as many as there may be. */
export class LimitExceededError extends FilaError {}
/** Backpressure: the broker takes no more now. */
export class OverloadedError extends FilaError {}
/** The queue holds as much as it may. */
export class QueueFullError extends OverloadedError {}
/** The broker cannot be reached, or is shutting down. */
export class UnavailableError extends FilaError {}
/** No answer in time. The request may or may not have been carried out. */
export class DeadlineExceededError extends FilaError {}
/** The caller gave up, with an AbortSignal. The request may or may not have been carried out. */
export class CancelledError extends FilaError {}
/** The broker does not know the caller. */
export class UnauthenticatedError extends FilaError {}
/** The broker does not allow the call. */
export class PermissionDeniedError extends FilaError {}
/** This server cannot do that. */
export class UnsupportedError extends FilaError {}
/** The broker failed, or sent an unexpected answer. */
export class InternalError extends FilaError {}
/** The client was closed. */
export class ClientClosedError extends FilaError {}

/** What became of one message of `enqueueMany`. */
export type EnqueueResult = { id: string; duplicate: boolean; error?: undefined } | { error: FilaError };

/** Some messages of `enqueueMany` were not enqueued. `results` has an entry for each message, in order. */
export class EnqueueManyError extends FilaError {
  constructor(readonly results: readonly EnqueueResult[]) {
    const failed = results.flatMap((each) => (each.error === undefined ? [] : [each.error]));
    const first = failed[0];
    super(`${failed.length} of ${results.length} messages were not enqueued: ${first?.message ?? ''}`, {
      kind: first?.kind,
      retryable: failed.every((each) => each.retryable),
      cause: first,
    });
  }
}

/**
 * Makes a call. Its error is the caller's own, with the stack of the call: the answer comes in another turn of the event
 * loop, and may be the answer to many callers.
 */
export async function called<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof FilaError)) throw error;
    const own = new (error.constructor as ErrorClass)(error.message, error);
    Error.captureStackTrace(own, called);
    throw own;
  }
}

type ErrorClass = new (message: string, details?: ErrorDetails) => FilaError;

const BY_KIND: Partial<Record<ErrorKind, ErrorClass>> = {
  [ErrorKind.ERROR_KIND_INTERNAL]: InternalError,
  [ErrorKind.ERROR_KIND_INVALID_ARGUMENT]: InvalidArgumentError,
  [ErrorKind.ERROR_KIND_PAYLOAD_TOO_LARGE]: LimitExceededError,
  [ErrorKind.ERROR_KIND_TOO_LARGE]: LimitExceededError,
  [ErrorKind.ERROR_KIND_LIMIT_REACHED]: LimitExceededError,
  [ErrorKind.ERROR_KIND_QUEUE_NOT_FOUND]: QueueNotFoundError,
  [ErrorKind.ERROR_KIND_QUEUE_ALREADY_EXISTS]: QueueAlreadyExistsError,
  [ErrorKind.ERROR_KIND_MESSAGE_NOT_FOUND]: MessageNotFoundError,
  [ErrorKind.ERROR_KIND_LEASE_ENDED]: MessageNotFoundError,
  [ErrorKind.ERROR_KIND_MESSAGE_GONE]: MessageNotFoundError,
  [ErrorKind.ERROR_KIND_CONFIG_NOT_FOUND]: ConfigNotFoundError,
  [ErrorKind.ERROR_KIND_UNAUTHENTICATED]: UnauthenticatedError,
  [ErrorKind.ERROR_KIND_KEY_ENDED]: UnauthenticatedError,
  [ErrorKind.ERROR_KIND_PERMISSION_DENIED]: PermissionDeniedError,
  [ErrorKind.ERROR_KIND_FAILED_PRECONDITION]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_CLAIM_LOST]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_FENCED]: FencedError,
  [ErrorKind.ERROR_KIND_TOO_FAR_AHEAD]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_NOT_STAGED]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_STALE_SEQUENCE]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_SEQUENCE_REUSED]: FailedPreconditionError,
  [ErrorKind.ERROR_KIND_PRODUCER_FENCED]: FencedError,
  [ErrorKind.ERROR_KIND_OVERLOADED]: OverloadedError,
  [ErrorKind.ERROR_KIND_QUOTA_EXCEEDED]: OverloadedError,
  [ErrorKind.ERROR_KIND_QUEUE_FULL]: QueueFullError,
  [ErrorKind.ERROR_KIND_SHUTTING_DOWN]: UnavailableError,
  [ErrorKind.ERROR_KIND_STORE_BUSY]: UnavailableError,
  [ErrorKind.ERROR_KIND_STORE_FULL]: OverloadedError,
  [ErrorKind.ERROR_KIND_STORE_FAILED]: InternalError,
  [ErrorKind.ERROR_KIND_NOT_OWNER]: UnavailableError,
  [ErrorKind.ERROR_KIND_UNSUPPORTED]: UnsupportedError,
  [ErrorKind.ERROR_KIND_PROVIDER_AWAY]: UnavailableError,
};

/** By the number of the gRPC status: for a status without a kind, and for kinds that this version does not know. */
const BY_CODE: Readonly<Record<number, [ErrorClass, Kind]>> = {
  1: [CancelledError, 'CANCELLED'],
  3: [InvalidArgumentError, 'INVALID_ARGUMENT'],
  4: [DeadlineExceededError, 'DEADLINE_EXCEEDED'],
  7: [PermissionDeniedError, 'PERMISSION_DENIED'],
  8: [OverloadedError, 'OVERLOADED'],
  9: [FailedPreconditionError, 'FAILED_PRECONDITION'],
  12: [UnsupportedError, 'UNSUPPORTED'],
  14: [UnavailableError, 'UNAVAILABLE'],
  16: [UnauthenticatedError, 'UNAUTHENTICATED'],
};

/** The error for a refusal of the broker. `text` is for one that has none of its own. */
export function fromWire(error: WireError, text = ''): FilaError {
  const known = BY_KIND[error.kind];
  const made = known ?? BY_CODE[error.code]?.[0] ?? InternalError;
  return new made(error.message || text, {
    kind: known === undefined ? 'UNRECOGNIZED' : (ErrorKind[error.kind].replace('ERROR_KIND_', '') as Kind),
    retryable: error.retryable,
    retryAfterMs: error.retryAfterMs,
    owner: error.owner,
  });
}

/** The error for a status that did not come from the broker, but from the transport or a proxy. */
export function fromCode(code: number, text: string): FilaError {
  const [made, kind] = BY_CODE[code] ?? [InternalError, 'INTERNAL'];
  return new made(text, { kind, retryable: code === 14 || code === 8 });
}

export const closedError = (): ClientClosedError =>
  new ClientClosedError('the client is closed', { kind: 'CLOSED' });

/** For a batch that the broker may not know any more: sent again, it could be carried out twice. */
export const forgottenError = (): FailedPreconditionError =>
  new FailedPreconditionError('the answer was lost, and the broker may not know the request any more', {
    kind: 'STALE_SEQUENCE',
  });

/** The error for bytes of the broker that the contract does not allow. */
export function unexpectedAnswer(cause: unknown): InternalError {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new InternalError(`unexpected answer from the broker: ${text}`, { kind: 'INTERNAL', cause });
}

/** Why a caller's signal ended its call: a deadline if it is one of `AbortSignal.timeout`. */
export function abortedError(signal: AbortSignal): FilaError {
  const cause: unknown = signal.reason;
  if (cause instanceof Error && cause.name === 'TimeoutError') {
    return new DeadlineExceededError('the deadline of the signal has passed', {
      kind: 'DEADLINE_EXCEEDED',
      cause,
    });
  }
  return new CancelledError('the caller cancelled the call', { kind: 'CANCELLED', cause });
}
