import type { Metadata, ServiceError } from '@grpc/grpc-js';

import type { Peer, RawStream } from './connection.js';
import { unexpectedAnswer } from './errors.js';
import type { Message } from './generated/fila/v1/messages.js';
import { ConsumeRequest, ConsumeResponse, FilaServiceService } from './generated/fila/v1/service.js';
import { type Failure, failureOf } from './status.js';

/** The broker learns within this time what the application was handed. */
const REPORT_EVERY_MS = 5;
/** How long a goodbye may take before the call is cancelled. */
const GOODBYE_MS = 5000;
const VISIBILITY = 'fila-visibility-timeout-ms';

export interface StreamEvents {
  /** `first` is the number of the first of these messages on this stream, counted from 1. */
  deliver(messages: readonly Message[], first: number): void;
  visibility(timeoutMs: number): void;
}

/** One `Consume` call, from its opening to its end. */
export class ConsumeStream {
  /** Resolves when the call has ended. undefined: the broker ended it with OK. */
  readonly ended: Promise<Failure | undefined>;
  readonly #call: RawStream;
  #delivered = 0;
  #handed = 0;
  #reported = 0;
  #closing = false;
  #over = false;
  #end!: (failure: Failure | undefined) => void;
  #report: NodeJS.Timeout | undefined;
  #goodbye: NodeJS.Timeout | undefined;

  constructor(
    peer: Peer,
    metadata: Metadata,
    first: { queue: string; maxInFlight: number },
    events: StreamEvents,
  ) {
    const call = (this.#call = peer.open(FilaServiceService.consume.path, metadata));
    this.ended = new Promise((resolve) => {
      this.#end = (failure) => {
        this.#over = true;
        clearTimeout(this.#report);
        clearTimeout(this.#goodbye);
        resolve(failure);
      };
    });
    call.on('error', (error: ServiceError) => this.#end(failureOf(error)));
    call.on('status', () => this.#end(undefined));
    call.on('metadata', (initial: Metadata) => {
      const told = Number(initial.get(VISIBILITY)[0]);
      if (told > 0) events.visibility(told);
    });
    call.on('data', (data: Buffer) => this.#receive(data, events));
    this.#write({ ...first, handed: 0 });
  }

  #receive(data: Buffer, events: StreamEvents): void {
    if (this.#over) return;
    let response: ConsumeResponse;
    try {
      response = ConsumeResponse.decode(data);
    } catch (cause) {
      this.#end({ error: unexpectedAnswer(cause), refused: false, lost: false, owner: '' });
      this.cancel();
      return;
    }
    const { messages, visibilityTimeoutMs } = response;
    if (visibilityTimeoutMs > 0) events.visibility(visibilityTimeoutMs);
    const first = this.#delivered + 1;
    this.#delivered += messages.length;
    // What was sent before the broker saw the goodbye is on its way back.
    if (!this.#closing && messages.length > 0) events.deliver(messages, first);
  }

  /** Reads no further messages until `flow`: the broker is held back by the connection. */
  hold(): void {
    this.#call.pause();
  }

  flow(): void {
    this.#call.resume();
  }

  /** The application was handed this message, the last one so far. The broker is told soon. */
  handed(number: number): void {
    this.#handed = number;
    this.#report ??= setTimeout(this.#tell, REPORT_EVERY_MS);
  }

  /** Tells the broker of a message before the application has it. Resolves to false when the stream has ended. */
  async handedAlone(number: number): Promise<boolean> {
    if (this.#over || this.#closing) return false;
    this.#handed = this.#reported = number;
    const request = encode({ queue: '', handed: this.#handed });
    const written = await new Promise<boolean>((resolve) => {
      void this.ended.then(() => resolve(false));
      this.#call.write(request, (error?: Error | null) => resolve(!error));
    });
    // The connection writes what it has been given before the next turn of the loop.
    await new Promise((resolve) => setImmediate(resolve));
    return written && !this.#over;
  }

  setCredit(maxInFlight: number): void {
    if (!this.#over && !this.#closing) this.#write({ queue: '', maxInFlight, handed: this.#handed });
  }

  /** Says goodbye: what was handed stays leased, the rest goes back untouched. */
  halfClose(): void {
    if (this.#over || this.#closing) return;
    this.#tell();
    this.#closing = true;
    this.flow(); // the end comes behind what was not read
    this.#call.end();
    this.#goodbye = setTimeout(() => this.#call.cancel(), GOODBYE_MS);
  }

  cancel(): void {
    this.#closing = true;
    clearTimeout(this.#report);
    this.flow();
    this.#call.cancel();
  }

  readonly #tell = (): void => {
    clearTimeout(this.#report);
    this.#report = undefined;
    if (this.#over || this.#closing || this.#handed === this.#reported) return;
    this.#reported = this.#handed;
    this.#write({ queue: '', handed: this.#handed });
  };

  #write(request: ConsumeRequest): void {
    this.#call.write(encode(request));
  }
}

function encode(request: ConsumeRequest): Buffer {
  return Buffer.from(ConsumeRequest.encode(request).finish());
}
