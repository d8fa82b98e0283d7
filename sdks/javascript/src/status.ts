import { BinaryReader } from '@bufbuild/protobuf/wire';
import { type Metadata, type ServiceError, status } from '@grpc/grpc-js';

import { type FilaError, fromCode, fromWire } from './errors.js';
import { Error as WireError } from './generated/fila/v1/errors.js';

const DETAILS = 'grpc-status-details-bin';
const OWNER = 'fila-owner';
const ERROR_TYPE = 'type.googleapis.com/fila.v1.Error';

/** How a call ended that did not succeed. */
export interface Failure {
  readonly error: FilaError;
  /** Whether the broker said so. If not, the connection or a proxy ended the call, and what it asked for may be done. */
  readonly refused: boolean;
  /** Whether to open the stream again: the connection was lost, or the broker says that a later attempt may succeed. */
  readonly lost: boolean;
  /** The member of the cluster to ask instead. */
  readonly owner: string;
}

const LOST_CODES: ReadonlySet<number> = new Set([
  status.UNAVAILABLE,
  status.CANCELLED,
  status.INTERNAL,
  status.UNKNOWN,
]);

export function failureOf(error: ServiceError): Failure {
  const details = detailsOf(error.metadata);
  if (details === undefined) {
    return {
      error: fromCode(error.code, error.details || error.message),
      refused: false,
      lost: LOST_CODES.has(error.code),
      owner: '',
    };
  }
  const owner = ownerOf(error.metadata) || details.owner;
  return { error: fromWire(details, error.details), refused: true, lost: details.retryable, owner };
}

/** The member that the end of a call names. Empty if there is none. */
export function ownerOf(trailers: Metadata): string {
  const named = trailers.get(OWNER)[0];
  return typeof named === 'string' ? named : '';
}

/** The first detail of the google.rpc.Status that the broker sends along, if it is an error of the contract. */
function detailsOf(metadata: Metadata | undefined): WireError | undefined {
  const encoded = metadata?.get(DETAILS)[0];
  if (!Buffer.isBuffer(encoded)) return undefined;
  try {
    for (const any of fields(encoded, 3)) {
      const [type, value] = [fields(any, 1)[0], fields(any, 2)[0]];
      if (type !== undefined && Buffer.from(type).toString() === ERROR_TYPE) {
        return WireError.decode(value ?? new Uint8Array());
      }
    }
  } catch {
    // A proxy may send details of its own, in any form.
  }
  return undefined;
}

/** The values of a length-delimited field. */
function fields(message: Uint8Array, number: number): Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === number) found.push(reader.bytes());
    else reader.skip(type);
  }
  return found;
}
