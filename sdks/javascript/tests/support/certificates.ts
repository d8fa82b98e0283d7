import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Pair {
  cert: string;
  key: string;
}

/** A CA that signs what a test asks for, as PEM files. */
export class Authority {
  readonly ca: string;
  readonly #key: string;

  constructor(
    readonly folder: string,
    readonly name: string,
  ) {
    this.ca = join(folder, `${name}.pem`);
    this.#key = join(folder, `${name}.key`);
    openssl(
      'req',
      '-x509',
      ...NEW_KEY,
      '-keyout',
      this.#key,
      '-out',
      this.ca,
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
    );
  }

  sign(name: string, usage: 'serverAuth' | 'clientAuth'): Pair {
    const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((kind) =>
      join(this.folder, `${this.name}-${name}.${kind}`),
    ) as [string, string, string, string];
    openssl('req', ...NEW_KEY, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
    writeFileSync(extensions, `subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=${usage}\n`);
    const from = [
      '-in',
      request,
      '-CA',
      this.ca,
      '-CAkey',
      this.#key,
      '-CAcreateserial',
      '-extfile',
      extensions,
    ];
    openssl('x509', '-req', ...from, '-out', cert, '-days', '2');
    return { cert, key };
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}
