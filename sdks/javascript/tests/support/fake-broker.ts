import {
  Metadata,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { BinaryWriter } from '@bufbuild/protobuf/wire';

import { FilaAdminService as admin } from '../../src/generated/fila/v1/admin.js';
import { Error as WireError, type ErrorKind } from '../../src/generated/fila/v1/errors.js';
import { Isolation, type Message } from '../../src/generated/fila/v1/messages.js';
import {
  type ConsumeRequest,
  type ConsumeResponse,
  type EnqueueBatchRequest,
  type EnqueueBatchResponse,
  FilaServiceService as service,
  type SettleRequest,
  type SettleResponse,
} from '../../src/generated/fila/v1/service.js';

export type EnqueueStream = ServerDuplexStream<EnqueueBatchRequest, EnqueueBatchResponse>;
export type SettleStream = ServerDuplexStream<SettleRequest, SettleResponse>;
export type ConsumeStream = ServerDuplexStream<ConsumeRequest, ConsumeResponse>;

export type Bytes = ServerDuplexStream<ConsumeRequest, Buffer>;

/** What a unary call gives: a response, or how it is refused. */
type Given = { answer: object; trailers?: Metadata } | Partial<StatusObject>;

interface Handlers {
  enqueueStream?: (call: EnqueueStream) => void;
  settle?: (call: SettleStream) => void;
  consume?: (call: ConsumeStream) => void;
  /** `Consume` with responses as bytes, of whatever meaning. */
  consumeBytes?: (call: Bytes) => void;
  /** Unary calls by their names. What a response leaves out is empty; one that is bytes is sent as it is. */
  unary?: Readonly<Record<string, (call: ServerUnaryCall<Record<string, unknown>, unknown>) => Given>>;
}

const UNARY = { describe: service.describe, ...admin };

/** A server of the contract whose every answer a test decides. */
export class FakeBroker implements Disposable {
  readonly #server = new Server();
  address = '';

  static async start(handlers: Handlers): Promise<FakeBroker> {
    const broker = new FakeBroker();
    const { enqueueStream, settle, consume } = service;
    if (handlers.enqueueStream)
      broker.#server.addService({ enqueueStream }, { enqueueStream: handlers.enqueueStream });
    if (handlers.settle) broker.#server.addService({ settle }, { settle: handlers.settle });
    if (handlers.consume) broker.#server.addService({ consume }, { consume: handlers.consume });
    if (handlers.consumeBytes) {
      const bytes = { ...consume, responseSerialize: (data: Buffer) => data };
      broker.#server.addService({ consume: bytes }, { consume: handlers.consumeBytes });
    }
    for (const [name, give] of Object.entries(handlers.unary ?? {})) broker.#answer(name, give);
    const port = await new Promise<number>((resolve, reject) => {
      broker.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    broker.address = `127.0.0.1:${port}`;
    return broker;
  }

  #answer(name: string, give: NonNullable<Handlers['unary']>[string]): void {
    const method = UNARY[name as keyof typeof UNARY];
    const responseSerialize = (answer: object): Buffer =>
      Buffer.isBuffer(answer)
        ? answer
        : method.responseSerialize({ ...method.responseDeserialize(Buffer.alloc(0)), ...answer } as never);
    const handler = (
      call: ServerUnaryCall<Record<string, unknown>, unknown>,
      done: sendUnaryData<object>,
    ): void => {
      const given = give(call);
      if ('answer' in given) done(null, given.answer, given.trailers);
      else done(given);
    };
    this.#server.addService({ [name]: { ...method, responseSerialize } }, { [name]: handler });
  }

  [Symbol.dispose](): void {
    this.#server.forceShutdown();
  }
}

export function wireError(kind: ErrorKind, given: Partial<WireError> = {}): WireError {
  return {
    code: status.UNAVAILABLE,
    message: 'refused',
    kind,
    retryable: true,
    retryAfterMs: 0,
    owner: '',
    ...given,
  };
}

/** A status with the error as its detail, as the broker sends it. */
export function refusal(error: WireError, owner = ''): Partial<StatusObject> {
  const any = new BinaryWriter();
  any.uint32(10).string('type.googleapis.com/fila.v1.Error');
  any.uint32(18).bytes(WireError.encode({ ...error, message: '' }).finish());
  const details = new BinaryWriter().uint32(8).int32(error.code).uint32(26).bytes(any.finish());
  const metadata = new Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(details.finish()));
  if (owner !== '') metadata.set('fila-owner', owner);
  return { code: error.code, details: error.message, metadata };
}

/** Ends a stream with a status. */
export function end(
  call: { emit(event: 'error', error: unknown): boolean },
  how: Partial<StatusObject>,
): void {
  call.emit('error', Object.assign(new Error(how.details), how));
}

export function answered(request: EnqueueBatchRequest, prefix = 'id'): EnqueueBatchResponse {
  const results = request.messages.map((_, n) => ({
    messageId: `${prefix}-${request.sequence}-${n}`,
    duplicate: false,
  }));
  return { results, sequence: request.sequence };
}

/** A message as the broker delivers it. */
export function delivered(id: string, isolation = Isolation.ISOLATION_UNSPECIFIED): Message {
  return {
    id,
    headers: new Map(),
    payload: Buffer.alloc(0),
    metadata: {
      fairnessKey: 'default',
      weight: 1,
      throttleKeys: [],
      attemptCount: 0,
      queueId: 'q',
      priority: 5,
      cost: 1,
      leaseId: `lease-${id}`,
      isolation,
    },
  };
}

export function delivery(...ids: string[]): ConsumeResponse {
  return { messages: ids.map((id) => delivered(id)), visibilityTimeoutMs: 0, activeWeight: 0 };
}

/** Takes a consumer, as the broker does it: with the visibility timeout. */
export function accept(call: { sendMetadata(metadata: Metadata): void }, visibilityMs = 30_000): void {
  const metadata = new Metadata();
  metadata.set('fila-visibility-timeout-ms', String(visibilityMs));
  call.sendMetadata(metadata);
}
