/** The client of the Fila message broker for Node.js. */
export type { PeekOptions, SweepOptions } from './admin.js';
export type {
  DeadLetter,
  Explanation,
  FailedAttempt,
  HookStats,
  MessageFilter,
  PeekedMessage,
  PeekPage,
  QueueInfo,
  QueueSettings,
  QueueStats,
  ThrottleLimit,
  WaitReason,
  WaitStats,
} from './admin-types.js';
export {
  Client,
  type ClientOptions,
  type EnqueueOptions,
  type LeaseOptions,
  type OutgoingMessage,
} from './client.js';
export type { CallOptions } from './connection.js';
export { type ConsumeOptions, Consumer } from './consumer.js';
export type { KeyOptions, TlsOptions } from './credentials.js';
export type { Headers, MessageOptions, Payload } from './encoding.js';
export {
  CancelledError,
  ClientClosedError,
  ConfigNotFoundError,
  DeadlineExceededError,
  EnqueueManyError,
  type EnqueueResult,
  FailedPreconditionError,
  FencedError,
  FilaError,
  InternalError,
  InvalidArgumentError,
  type Kind,
  LimitExceededError,
  MessageNotFoundError,
  OverloadedError,
  PermissionDeniedError,
  QueueAlreadyExistsError,
  QueueFullError,
  QueueNotFoundError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedError,
} from './errors.js';
export { Feature, type DescribeResponse } from './generated/fila/v1/service.js';
export { ConsumeMessage, type NackOptions } from './message.js';
export type { Enqueued } from './producer.js';
export type { OpenTelemetryApi } from './tracing.js';
