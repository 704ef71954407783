import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { generate } from 'selfsigned';

/** A certificate and its private key, PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

const dayMs = 86_400_000;

/** Creates a certificate authority for a test. */
export function makeAuthority(name: string): Promise<Pair> {
  return make(name, {
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
}

/** Creates a certificate for 127.0.0.1 and `hosts`, usable for a server and for a client. */
export function makeCertificate(
  name: string,
  authority: Pair,
  validity: { readonly fromMs?: number; readonly toMs?: number } = {},
  hosts: readonly string[] = ['localhost'],
): Promise<Pair> {
  return make(name, {
    ca: authority,
    notBeforeDate: new Date(validity.fromMs ?? Date.now() - dayMs),
    notAfterDate: new Date(validity.toMs ?? Date.now() + 365 * dayMs),
    extensions: [
      { name: 'basicConstraints', cA: false },
      { name: 'keyUsage', digitalSignature: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          ...hosts.map((host) => (isIP(host) === 0 ? { type: 2 as const, value: host } : { type: 7 as const, ip: host })),
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
}

async function make(name: string, options: NonNullable<Parameters<typeof generate>[1]>): Promise<Pair> {
  // Takes a third of a second to load, which few tests need.
  const selfsigned = await import('selfsigned');
  const made = await selfsigned.generate([{ name: 'commonName', value: name }], { keyType: 'ec', curve: 'P-256', algorithm: 'sha256', ...options });
  return { cert: made.cert, key: made.private };
}

/** Writes the pair as `<name>.crt` and `<name>.key` (0600). */
export async function writePair(folder: string, name: string, pair: Pair): Promise<void> {
  await writeFile(join(folder, `${name}.key`), pair.key, { mode: 0o600 });
  await writeFile(join(folder, `${name}.crt`), pair.cert);
}
