import type { Headers } from './encoding.js';

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
  readonly traceState?: TraceState;
}

interface TraceState {
  serialize(): string;
}

interface Span {
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

interface Tracer {
  startActiveSpan<R>(name: string, options: object, context: unknown, run: (span: Span) => R): R;
}

/**
 * The package `@opentelemetry/api`, as much of it as is used. It is written down here, since programs without the package
 * compile against these types, too.
 */
export interface OpenTelemetryApi {
  readonly context: { active(): unknown };
  readonly trace: {
    getSpanContext(context: unknown): SpanContext | undefined;
    setSpanContext(context: unknown, span: SpanContext): unknown;
    getTracer(name: string): Tracer;
  };
  readonly TraceFlags: { readonly SAMPLED: number };
  readonly SpanKind: { readonly CONSUMER: number };
  readonly SpanStatusCode: { readonly ERROR: number };
  isSpanContextValid(span: SpanContext): boolean;
  createTraceState(text: string): TraceState;
}

/** A longer tracestate is left out, since it travels with every message. */
const MAX_STATE = 512;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/** The W3C trace context of messages, for programs that have OpenTelemetry. */
export class Tracing {
  readonly #api: OpenTelemetryApi | undefined;

  constructor(api: OpenTelemetryApi | false | undefined = installed()) {
    this.#api = api === false ? undefined : api;
  }

  /** The headers with the context of the current span, if that is sampled and the headers have none. */
  inject(headers: Headers): Headers {
    const api = this.#api;
    const span = api?.trace.getSpanContext(api.context.active());
    if (api === undefined || span === undefined || headers.traceparent !== undefined) return headers;
    if (!api.isSpanContextValid(span) || (span.traceFlags & api.TraceFlags.SAMPLED) === 0) return headers;
    const flags = span.traceFlags.toString(16).padStart(2, '0');
    const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
    const tracestate = span.traceState?.serialize() ?? '';
    const withState = tracestate !== '' && tracestate.length <= MAX_STATE;
    return { ...headers, traceparent, ...(withState ? { tracestate } : {}) };
  }

  process<T>(message: { id: string; queue: string; headers: Headers }, handler: () => T): T {
    const api = this.#api;
    if (api === undefined) return handler();
    const attributes = {
      'messaging.system': 'fila',
      'messaging.operation.name': 'process',
      'messaging.destination.name': message.queue,
      'messaging.message.id': message.id,
    };
    const options = { kind: api.SpanKind.CONSUMER, attributes };
    const tracer = api.trace.getTracer('@fila/client');
    return tracer.startActiveSpan(
      `process ${message.queue}`,
      options,
      this.#extract(api, message.headers),
      (span) => {
        const fail = (error: unknown): never => {
          span.setStatus({
            code: api.SpanStatusCode.ERROR,
            message: error instanceof Error ? error.message : String(error),
          });
          span.end();
          throw error;
        };
        try {
          const result = handler();
          if (!isThenable(result)) {
            span.end();
            return result;
          }
          const ended = Promise.resolve(result).then((value) => {
            span.end();
            return value;
          }, fail);
          return ended as T;
        } catch (error) {
          return fail(error);
        }
      },
    );
  }

  #extract(api: OpenTelemetryApi, headers: Headers): unknown {
    const active = api.context.active();
    const [, traceId, spanId, flags] = TRACEPARENT.exec(headers.traceparent ?? '') ?? [];
    if (traceId === undefined || spanId === undefined || flags === undefined) return active;
    const traceState =
      headers.tracestate === undefined ? undefined : api.createTraceState(headers.tracestate);
    const span = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true, traceState };
    return api.trace.setSpanContext(active, span);
  }
}

/** The package, if the program has it. */
function installed(): OpenTelemetryApi | undefined {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports
    return require('@opentelemetry/api') as OpenTelemetryApi;
  } catch {
    return undefined;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
