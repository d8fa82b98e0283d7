import {
  type ChannelOptions,
  Client as GrpcClient,
  type ClientDuplexStream,
  connectivityState,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';

import { onAbort } from './aborting.js';
import { checkCall } from './arguments.js';
import { Backoff } from './backoff.js';
import { channelCredentials, tlsChannelOptions, tlsFiles, type TlsOptions } from './credentials.js';
import { abortedError, closedError, type FilaError, unexpectedAnswer, UnavailableError } from './errors.js';
import { FilaServiceService } from './generated/fila/v1/service.js';
import { encoded } from './requests.js';
import { failureOf, ownerOf } from './status.js';
import { now, timerMs, wait } from './timer.js';

/** The largest request that a broker takes by default, and the largest response that the client takes. */
export const MAX_RPC_BYTES = 16 << 20;
/** How often one call follows the members of a cluster that others name. */
export const MAX_HOPS = 4;
/** How many members a client keeps connections to. */
const MAX_PEERS = 16;
/** How often at most a client moves because its calls were passed on. */
const MOVE_EVERY_MS = 1000;
/** How long connecting is waited for. With several addresses that begins shorter, and doubles with each round. */
const CONNECT_MS = 20_000;
const FIRST_CONNECT_MS = 1000;

const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.max_receive_message_length': MAX_RPC_BYTES,
  'grpc.max_send_message_length': -1,
  'grpc.initial_reconnect_backoff_ms': 20,
  'grpc.max_reconnect_backoff_ms': 1000,
  // The SDK retries by the rules of the protocol, and its connections are its own.
  'grpc.enable_retries': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_channelz': 0,
};

export interface CallOptions {
  /** How long the call may take, reconnects and retries included. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export type RawStream = ClientDuplexStream<Buffer, Buffer>;

const raw = (data: Buffer): Buffer => data;

/** Whether a text is `host:port`. */
export function isAddress(address: string): boolean {
  const port = Number(/^(?:\[[^\s/[\]]+\]|[^\s:/[\]]+):(\d{1,5})$/.exec(address)?.[1] ?? 0);
  return port > 0 && port < 65_536;
}

/**
 * The channel to one member. It connects again by itself, for as long as it is not closed. So there is one for an address,
 * and no second one as long as it can be used.
 */
export class Peer {
  readonly #client: GrpcClient;
  readonly #files: string;

  constructor(
    readonly address: string,
    readonly tls: TlsOptions | undefined,
  ) {
    this.#files = tlsFiles(tls);
    const options = { ...CHANNEL_OPTIONS, ...tlsChannelOptions(tls) };
    // With the scheme, no host is taken for one.
    this.#client = new GrpcClient(`dns:${address}`, channelCredentials(tls), options);
  }

  get isReady(): boolean {
    return this.#client.getChannel().getConnectivityState(false) === connectivityState.READY;
  }

  /** Whether its certificates were replaced: it knows the former ones only. Files that are not there may be on their way. */
  get isStale(): boolean {
    try {
      return tlsFiles(this.tls) !== this.#files;
    } catch {
      return false;
    }
  }

  /** Waits for the outcome of connecting, at most so long. Resolves to why there is no connection; empty: there is one. */
  async connected(ms: number): Promise<string> {
    for (const end = now() + ms; now() < end;) {
      const state = this.#client.getChannel().getConnectivityState(true);
      if (state === connectivityState.READY) return '';
      if (state === connectivityState.TRANSIENT_FAILURE) return await this.#trouble();
      if (state === connectivityState.SHUTDOWN) break;
      await this.#changed(state, end - now());
    }
    return `no connection within ${ms} ms`;
  }

  /** Waits until the state is another one than failure, at most so long. */
  async recovering(ms: number): Promise<void> {
    await this.#changed(connectivityState.TRANSIENT_FAILURE, ms);
  }

  async #changed(state: connectivityState, ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = Date.now() + timerMs(ms);
      this.#client.getChannel().watchConnectivityState(state, end, () => resolve());
    });
  }

  /** Why there is no connection. A call fails at once, with the reason, while there is none. */
  async #trouble(): Promise<string> {
    try {
      await this.unary(FilaServiceService.describe.path, Buffer.alloc(0), new Metadata(), 1000);
      return 'the connection was lost';
    } catch (error) {
      const { details, message } = error as Partial<ServiceError>;
      return (details ?? message ?? '').replace(/ Resolution note: $/, '');
    }
  }

  open(path: string, metadata: Metadata): RawStream {
    return this.#client.makeBidiStreamRequest(path, raw, raw, metadata);
  }

  /** Makes a call. `passedOn` is told the member that has answered, if it is another one. */
  unary(
    path: string,
    request: Buffer,
    metadata: Metadata,
    ms: number,
    signal?: AbortSignal,
    passedOn?: (owner: string) => void,
  ): Promise<Buffer> {
    return new Promise<Buffer>((resolve, reject) => {
      const deadline = Date.now() + timerMs(ms);
      const call = this.#client.makeUnaryRequest(
        path,
        raw,
        raw,
        request,
        metadata,
        { deadline },
        (...ended) => {
          leave?.();
          const [error, response] = ended;
          if (error !== null) reject(error);
          else resolve(response as Buffer);
        },
      );
      const leave = signal === undefined ? undefined : onAbort(signal, () => call.cancel());
      if (signal?.aborted) call.cancel();
      call.on('status', ({ code, metadata: trailers }) => {
        if (code === status.OK) passedOn?.(ownerOf(trailers));
      });
    });
  }

  close(): void {
    this.#client.close();
  }
}

export interface ConnectionOptions {
  addresses: readonly string[];
  timeoutMs: number;
  tls: TlsOptions | undefined;
  key: () => string | undefined;
}

/** An attempt to connect, for all who wait for it. */
interface Connecting {
  readonly peer: Promise<Peer>;
  readonly over: AbortSignal;
}

/** The connections of a client: to the first address that answers, and to members that others name. */
export class Connection {
  readonly timeoutMs: number;
  /** The last known reason why there is no connection. */
  trouble = '';
  readonly #options: ConnectionOptions;
  readonly #addresses: readonly string[];
  readonly #peers = new Map<string, Peer>();
  readonly #ended = new AbortController();
  #current: string;
  #connecting: Connecting | undefined;
  #moveAt = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.timeoutMs = options.timeoutMs;
    this.#addresses = [...new Set(options.addresses)];
    this.#current = this.#addresses[0] as string;
  }

  get closed(): boolean {
    return this.#ended.signal.aborted;
  }

  /** The address that new calls go to. */
  get current(): string {
    return this.#current;
  }

  get isReady(): boolean {
    return this.#peers.get(this.#current)?.isReady ?? false;
  }

  metadata(): Metadata {
    const metadata = new Metadata();
    const key = this.#options.key();
    if (key !== undefined) metadata.set('authorization', `Bearer ${key}`);
    return metadata;
  }

  /** The member to talk to, once there is a connection. Rejects only when the client is closed. */
  ready(): Promise<Peer> {
    if (this.closed) return Promise.reject(closedError());
    const peer = this.#peers.get(this.#current);
    if (peer?.isReady) return Promise.resolve(peer);
    return this.#begin().peer;
  }

  #begin(): Connecting {
    if (this.#connecting !== undefined) return this.#connecting;
    const over = new AbortController();
    const peer = this.#connect().finally(() => {
      this.#connecting = undefined;
      over.abort();
    });
    peer.catch(() => undefined); // there may be nobody who waits for it
    return (this.#connecting = { peer, over: over.signal });
  }

  async #connect(): Promise<Peer> {
    const backoff = new Backoff();
    let patience = this.#addresses.length > 1 ? FIRST_CONNECT_MS : CONNECT_MS;
    for (let tried = 1; ; tried++) {
      const address = this.#current;
      const peer = await this.#reach(address, patience);
      if (this.closed) throw closedError();
      if (peer !== undefined) {
        this.trouble = '';
        return peer;
      }
      this.leave(address);
      if (tried % this.#addresses.length > 0) continue;
      patience = Math.min(CONNECT_MS, patience * 2);
      const next = this.#peers.get(this.#current);
      const pause = backoff.nextMs();
      await (next === undefined ? wait(pause, this.#ended.signal) : next.recovering(pause));
      if (this.closed) throw closedError();
    }
  }

  async #reach(address: string, ms: number): Promise<Peer | undefined> {
    let trouble: string;
    try {
      const peer = this.#peer(address);
      trouble = await peer.connected(ms);
      if (trouble === '') return peer;
    } catch (error) {
      trouble = error instanceof Error ? error.message : String(error); // a file of a certificate is not there
    }
    this.trouble = `${address}: ${trouble}`;
    return undefined;
  }

  #peer(address: string): Peer {
    const known = this.#peers.get(address);
    if (known !== undefined && !known.isStale) return known;
    const peer = new Peer(address, this.#options.tls);
    this.#forget(address);
    this.#peers.set(address, peer);
    if (this.#peers.size > MAX_PEERS) this.#forget([...this.#peers.keys()][0] as string);
    return peer;
  }

  #forget(address: string): void {
    this.#peers.get(address)?.close();
    this.#peers.delete(address);
  }

  /** Goes to the member that another one has named. Returns false for what is no address: peers may name anything. */
  follow(owner: string): boolean {
    if (!isAddress(owner)) return false;
    this.#current = owner;
    return true;
  }

  /** Goes to the next address, if the present one is `address`. */
  leave(address: string): void {
    if (this.#current !== address) return;
    // A member that is not in the list is left for the beginning of the list.
    const next = (this.#addresses.indexOf(address) + 1) % this.#addresses.length;
    this.#current = this.#addresses[next] as string;
  }

  /** A call was passed on. That is a hint, and followed now and then only: queues may have several owners. */
  readonly #passedOn = (owner: string): void => {
    if (owner === '' || owner === this.#current || now() < this.#moveAt) return;
    if (this.follow(owner)) this.#moveAt = now() + MOVE_EVERY_MS;
  };

  /**
   * Makes a unary call. `again` says whether it may be sent again when its answer was lost. What the broker has refused
   * for now was not done, so that is always sent again.
   */
  async call<Q extends object, R>(
    method: MethodDefinition<Q, R>,
    request: Q,
    { timeoutMs = this.timeoutMs, signal }: CallOptions,
    again: boolean,
  ): Promise<R> {
    checkCall({ timeoutMs, signal });
    const data = encoded(method, request);
    const deadline = now() + timeoutMs;
    const backoff = new Backoff();
    let hops = 0;
    let keyEnded = false;
    for (;;) {
      const peer = await this.#readyBy(deadline, signal);
      const metadata = this.metadata();
      let response: Buffer;
      try {
        response = await peer.unary(method.path, data, metadata, deadline - now(), signal, this.#passedOn);
      } catch (thrown) {
        if (this.closed) throw closedError();
        if (signal?.aborted) throw abortedError(signal);
        const { error, refused, lost, owner } = failureOf(thrown as ServiceError);
        const follows = error.kind === 'NOT_OWNER' && this.follow(owner);
        if (follows && hops++ >= MAX_HOPS) throw error;
        const newKey: boolean = error.kind === 'KEY_ENDED' && !keyEnded;
        keyEnded ||= newKey;
        if (follows || newKey) continue;
        if (error.kind === 'SHUTTING_DOWN') this.leave(peer.address);
        if (!lost || !(refused || again)) throw error;
        await this.#pause(Math.max(error.retryAfterMs, backoff.nextMs()), deadline, error, signal);
        continue;
      }
      try {
        return method.responseDeserialize(response);
      } catch (cause) {
        throw unexpectedAnswer(cause);
      }
    }
  }

  async #pause(
    ms: number,
    deadline: number,
    error: FilaError,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (now() + ms >= deadline) throw error;
    await wait(ms, this.#ended.signal, signal);
    if (this.closed) throw closedError();
    if (signal?.aborted) throw abortedError(signal);
  }

  /** Calls that give up leave nothing behind, however long there is no connection: so they do not wait for a promise. */
  async #readyBy(deadline: number, signal: AbortSignal | undefined): Promise<Peer> {
    for (;;) {
      if (this.closed) throw closedError();
      if (signal?.aborted) throw abortedError(signal);
      const peer = this.#peers.get(this.#current);
      if (peer?.isReady) return peer;
      if (now() >= deadline) throw this.unavailable();
      await wait(deadline - now(), this.#begin().over, this.#ended.signal, signal);
    }
  }

  unavailable(): UnavailableError {
    const text = `no broker can be reached: ${this.trouble || this.#current}`;
    return new UnavailableError(text, { kind: 'UNAVAILABLE', retryable: true });
  }

  close(): void {
    this.#ended.abort();
    for (const address of [...this.#peers.keys()]) this.#forget(address);
  }
}
