import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as otel from '@opentelemetry/api';

import { type OpenTelemetryApi, Tracing } from '../../src/tracing.js';

const span = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: otel.TraceFlags.SAMPLED };

/** The API of a program whose current span is this one, and that records the spans that are made. */
function program(current?: otel.SpanContext) {
  const made: {
    name: string;
    parent: otel.SpanContext | undefined;
    status?: otel.SpanStatus;
    ended: boolean;
  }[] = [];
  const active =
    current === undefined ? otel.ROOT_CONTEXT : otel.trace.setSpanContext(otel.ROOT_CONTEXT, current);
  const startActiveSpan = (
    name: string,
    _: object,
    context: otel.Context,
    body: (span: object) => unknown,
  ): unknown => {
    const record: (typeof made)[number] = { name, parent: otel.trace.getSpanContext(context), ended: false };
    made.push(record);
    const setStatus = (status: otel.SpanStatus): void => void (record.status = status);
    return body({ setStatus, end: () => (record.ended = true) });
  };
  const api = {
    ...otel,
    context: { active: () => active },
    trace: {
      getSpanContext: (context: otel.Context) => otel.trace.getSpanContext(context),
      setSpanContext: (context: otel.Context, given: otel.SpanContext) =>
        otel.trace.setSpanContext(context, given),
      getTracer: () => ({ startActiveSpan }),
    },
  } as unknown as OpenTelemetryApi;
  return { tracing: new Tracing(api), made };
}

const traceparent = `00-${span.traceId}-${span.spanId}-01`;

test('a message carries the context of the current span, unless it has one or the span is not sampled', () => {
  assert.deepEqual(program(span).tracing.inject({ a: 'b' }), { a: 'b', traceparent });
  assert.deepEqual(program(span).tracing.inject({ traceparent: 'own' }), { traceparent: 'own' });
  assert.deepEqual(program({ ...span, traceFlags: 0 }).tracing.inject({}), {});
  assert.deepEqual(program().tracing.inject({}), {});
  const traceState = otel.createTraceState('vendor=1');
  assert.deepEqual(program({ ...span, traceState }).tracing.inject({}), {
    traceparent,
    tracestate: 'vendor=1',
  });
});

test('a handler runs in a span that continues the trace of the producer, and tells its failure', async () => {
  const { tracing, made } = program();
  const message = { id: 'id', queue: 'q', headers: { traceparent } };
  assert.equal(
    tracing.process(message, () => 7),
    7,
  );
  assert.equal(await tracing.process(message, () => Promise.resolve(8)), 8);
  const failing = tracing.process(message, () => Promise.reject(new Error('broken')));
  await assert.rejects(failing, /broken/);
  assert.ok(made.every(({ parent, ended }) => parent?.traceId === span.traceId && ended));
  assert.equal(made[2]?.status?.message, 'broken');
  tracing.process({ ...message, headers: { traceparent: 'nonsense' } }, () => undefined);
  assert.equal(made[3]?.parent, undefined);
});

test('without OpenTelemetry nothing is added, and handlers just run', () => {
  const tracing = new Tracing(false);
  const headers = {};
  assert.equal(tracing.inject(headers), headers);
  assert.equal(
    tracing.process({ id: '', queue: '', headers }, () => 1),
    1,
  );
});
