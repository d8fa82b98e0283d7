import { ChannelCredentials, type ChannelOptions } from '@grpc/grpc-js';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';

import { invalid, text } from './arguments.js';
import { FilaError, InvalidArgumentError, UnauthenticatedError } from './errors.js';

/** How to secure a connection. Paths of PEM files. */
export interface TlsOptions {
  /** The CAs that may have signed the broker's certificate. Absent: those that Node.js trusts. */
  ca?: string;
  /** The client's certificate, followed by those of intermediate CAs, and its private key. */
  cert?: string;
  key?: string;
  /** Whom the broker's certificate must be for, if not the host that is connected to. */
  serverName?: string;
}

export interface KeyOptions {
  /** An API key, or a token of an identity provider. A function is asked before each call. */
  apiKey?: string | (() => string);
  /** A file that holds the key. It is read again when it has changed. */
  apiKeyFile?: string;
}

/** Where the key comes from. Precedence: the options, $FILA_API_KEY, $FILA_API_KEY_FILE, none. */
export function keySource(
  options: KeyOptions,
  env: NodeJS.ProcessEnv = process.env,
): () => string | undefined {
  const { apiKey, apiKeyFile } = options;
  if (apiKey !== undefined && apiKeyFile !== undefined) {
    throw invalid('apiKey and apiKeyFile exclude each other');
  }
  if (typeof apiKey === 'function') return () => asked(apiKey);
  const given = apiKey ?? (apiKeyFile === undefined ? env.FILA_API_KEY : undefined);
  if (given !== undefined && (given !== '' || apiKey !== undefined)) {
    const key = checked(given, 'apiKey');
    return () => key;
  }
  const path = apiKeyFile ?? env.FILA_API_KEY_FILE;
  return path ? fromFile(path) : () => undefined;
}

/** What a program's own function says, or why it says nothing. */
function asked(apiKey: () => string): string {
  try {
    return checked(apiKey(), 'apiKey');
  } catch (cause) {
    if (cause instanceof FilaError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UnauthenticatedError(`apiKey: ${why}`, { kind: 'UNAUTHENTICATED', cause });
  }
}

/** A file that cannot be read later leaves the last key in use: it may be about to be replaced. */
function fromFile(path: string): () => string {
  let read: string;
  let key: string;
  try {
    read = stampOf(path);
    key = checked(readFileSync(path, 'utf8'), path);
  } catch (error) {
    throw error instanceof InvalidArgumentError
      ? error
      : invalid(`the API key cannot be read from ${path}`, error);
  }
  return () => {
    try {
      const now = stampOf(path);
      if (now !== read) [key, read] = [checked(readFileSync(path, 'utf8'), path), now];
    } catch {
      return key;
    }
    return key;
  };
}

function checked(given: unknown, where: string): string {
  const key = text(given, where).trim();
  if (!/^[\x21-\x7e]+$/.test(key))
    throw invalid(`${where} holds no API key or token: one line of printable ASCII`);
  return key;
}

/** What TLS was asked for: by the options, else by $FILA_TLS, $FILA_TLS_CA and so on, else none. */
export function tlsOptions(
  tls: TlsOptions | boolean | undefined,
  env: NodeJS.ProcessEnv = process.env,
): TlsOptions | undefined {
  if (tls === false) return undefined;
  const asked = tls === true ? {} : (tls ?? fromEnvironment(env));
  if (asked !== undefined && (asked.cert === undefined) !== (asked.key === undefined)) {
    throw invalid('tls: cert and key belong together');
  }
  return asked;
}

const SWITCH: ReadonlyMap<string, boolean> = new Map(
  Object.entries({ 1: true, true: true, yes: true, on: true, 0: false, false: false, no: false, off: false }),
);

function fromEnvironment(env: NodeJS.ProcessEnv): TlsOptions | undefined {
  const given: TlsOptions = {
    ca: env.FILA_TLS_CA || undefined,
    cert: env.FILA_TLS_CERT || undefined,
    key: env.FILA_TLS_KEY || undefined,
    serverName: env.FILA_TLS_SERVER_NAME || undefined,
  };
  const asked = env.FILA_TLS ?? '';
  const wanted =
    asked === '' ? Object.values(given).some((each) => each !== undefined) : SWITCH.get(asked.toLowerCase());
  if (wanted === undefined) throw invalid(`FILA_TLS is ${JSON.stringify(asked)}, expected true or false`);
  return wanted ? given : undefined;
}

/** Which files there are now: another text, once one of them was replaced. */
export function tlsFiles({ ca, cert, key }: TlsOptions = {}): string {
  return [ca, cert, key].map((path) => (path === undefined ? '' : stampOf(path))).join();
}

function stampOf(path: string): string {
  const found = statSync(path);
  return `${found.mtimeMs} ${found.size} ${found.ino}`;
}

/** Reads the files: a new channel has the certificates that are there by then. */
export function channelCredentials(tls: TlsOptions | undefined): ChannelCredentials {
  if (tls === undefined) return ChannelCredentials.createInsecure();
  const read = (path: string | undefined): Buffer | null => (path === undefined ? null : readFileSync(path));
  try {
    return ChannelCredentials.createSsl(read(tls.ca), read(tls.key), read(tls.cert));
  } catch (error) {
    throw invalid(`tls: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

export function tlsChannelOptions(tls: TlsOptions | undefined): ChannelOptions {
  if (tls?.serverName === undefined) return {};
  return { 'grpc.ssl_target_name_override': tls.serverName, 'grpc.default_authority': tls.serverName };
}

/** A key that leaves the machine without TLS can be read and used by whoever is on the path. */
export function warnOfPlaintext(addresses: readonly string[]): void {
  const hosts = addresses.map((address) =>
    address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, ''),
  );
  const far = hosts.find(
    (host) => host !== 'localhost' && host !== '::1' && !(isIP(host) === 4 && host.startsWith('127.')),
  );
  if (far !== undefined) {
    process.emitWarning(`the API key travels to ${far} in plaintext: use TLS`, {
      code: 'FILA_PLAINTEXT_KEY',
    });
  }
}
