// The driver of the JavaScript SDK for the conformance suite: reads requests from standard input, one JSON object a line,
// and answers each when it is done.
import { createInterface } from 'node:readline';

import { FilaError } from '../src/index.js';
import { Driver, type Table, UnsupportedOp } from './operations.js';

const driver = new Driver();

function described(error: unknown): Table {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof UnsupportedOp)
    return { kind: 'UNSUPPORTED_OP', type: name, message, retryable: false };
  if (error instanceof FilaError)
    return { kind: error.kind, type: name, message, retryable: error.retryable };
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return { kind: 'INTERNAL', type: name, message, retryable: false };
}

async function answer(request: Table): Promise<void> {
  let given: Table;
  try {
    given = { ok: (await driver.run(request, described)) ?? {} };
  } catch (error) {
    given = { error: described(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: request.id, ...given })}\n`);
}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on('line', (line) => void answer(JSON.parse(line) as Table));
lines.on('close', () => void driver.close());
