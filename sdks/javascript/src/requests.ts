import type { MethodDefinition } from '@grpc/grpc-js';

import { invalid, typeOf } from './arguments.js';

type Fields = Record<string, unknown>;

/**
 * Encodes the request of a unary call. Throws `InvalidArgumentError`, with the name of the field, for a value that the
 * field cannot have. The generated code would send `undefined` as the text "undefined".
 */
export function encoded<Q extends object, R>(method: MethodDefinition<Q, R>, request: Q): Buffer {
  const blank = method.requestDeserialize(Buffer.alloc(0)) as Fields;
  for (const [name, value] of Object.entries(request)) {
    const wanted = typeof blank[name];
    const isScalar = wanted === 'string' || wanted === 'number' || wanted === 'boolean';
    if (isScalar && typeof value !== wanted) {
      throw invalid(`${name} must be a ${wanted}, not ${typeOf(value)}`);
    }
  }
  try {
    return method.requestSerialize(request);
  } catch (cause) {
    const failed = (name: string, value: unknown): boolean => {
      try {
        method.requestSerialize({ ...blank, [name]: value } as Q);
        return false;
      } catch {
        return true;
      }
    };
    const [wrong = 'request'] = Object.entries(request).find(([name, value]) => failed(name, value)) ?? [];
    throw invalid(`${wrong}: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}
