import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { GatewayConfig } from './config.ts';

export type TlsConfig = NonNullable<GatewayConfig['tls']>;
type FileKey = 'certPath' | 'keyPath' | 'caPath';

/** What is wrong with a file in `gateway.tls`. The message starts with the dotted key, is for the operator and never contains the private key. */
export class TlsError extends Error {
  override readonly name = 'TlsError';

  constructor(key: FileKey, message: string, cause?: unknown) {
    super(`gateway.tls.${key}: ${message}`, cause === undefined ? undefined : { cause });
  }
}

/** The checked texts of the files: they belong together and are valid now. The fields match the options of node:tls. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  readonly minVersion: TlsConfig['minVersion'];
  /** When the first of the certificates expires, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

const expiryNoticeMs = 14 * 86_400_000;
const pemCertificate = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Returns the paths of the files in `gateway.tls`; relative ones start at `baseDir`, the home folder. */
export function tlsPaths({ certPath, keyPath, caPath }: TlsConfig, baseDir: string): TlsPaths {
  return { cert: resolve(baseDir, certPath), key: resolve(baseDir, keyPath), ...(caPath !== undefined && { ca: resolve(baseDir, caPath) }) };
}

/** Reads and checks the files of `gateway.tls`. Fails with `TlsError`. */
export function readTls(config: TlsConfig, baseDir: string, nowMs: number): TlsFiles {
  const paths = tlsPaths(config, baseDir);
  if (config.requireClientCert && config.caPath === undefined)
    throw new TlsError(
      'caPath',
      'is missing; expected the certificates of the authority that signs client certificates, because requireClientCert is true',
    );
  if (!config.requireClientCert && config.caPath !== undefined)
    throw new TlsError('caPath', 'has no effect while requireClientCert is false; set that to true, or take this key out');
  const cert = readText('certPath', paths.cert);
  const chain = parseCertificates('certPath', cert);
  const key = readText('keyPath', paths.key);
  const [own] = chain;
  if (own?.checkPrivateKey(parseKey(key)) !== true) throw new TlsError('keyPath', 'is not the private key of the certificate in certPath');
  if ((statSync(paths.key).mode & 0o007) !== 0)
    throw new TlsError('keyPath', `can be used by every user of this machine; run chmod o-rwx ${paths.key}`);
  const ca = paths.ca === undefined ? undefined : readText('caPath', paths.ca);
  const authorities = ca === undefined ? [] : parseCertificates('caPath', ca);
  checkDates('certPath', chain, nowMs);
  checkDates('caPath', authorities, nowMs);
  const options = { cert, key, ...(ca !== undefined && { ca }), minVersion: config.minVersion };
  try {
    // Loads a lot, and most daemons use plain HTTP.
    process.getBuiltinModule('node:tls').createSecureContext(options);
  } catch (error) {
    throw new TlsError('certPath', `cannot be used: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  return { ...options, expiresAtMs: Math.min(...[...chain, ...authorities].map((one) => one.validToDate.getTime())) };
}

/** Returns the warning within the last 14 days of a certificate; undefined before that. */
export function expiryNotice({ expiresAtMs }: TlsFiles, nowMs: number): string | undefined {
  return expiresAtMs - nowMs > expiryNoticeMs ? undefined : `A certificate of gateway.tls expires on ${new Date(expiresAtMs).toISOString()}`;
}

function readText(key: FileKey, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') throw new TlsError(key, `there is no file ${file}`, error);
    if (code === 'EACCES') throw new TlsError(key, `${file} cannot be read by the user of the daemon`, error);
    throw new TlsError(key, `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

function parseCertificates(key: FileKey, text: string): X509Certificate[] {
  const blocks = text.match(pemCertificate);
  if (blocks === null) throw new TlsError(key, 'holds no certificate; expected PEM text that begins with -----BEGIN CERTIFICATE-----');
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw new TlsError(key, 'holds a damaged certificate', error);
  }
}

function parseKey(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch (error) {
    const encrypted = /ENCRYPTED/.test(text);
    throw new TlsError('keyPath', encrypted ? 'is locked by a passphrase; expected a key without one' : 'holds no private key in PEM form', error);
  }
}

function checkDates(key: FileKey, certificates: readonly X509Certificate[], nowMs: number): void {
  for (const { subject, validFromDate, validToDate } of certificates) {
    const name = subject?.replaceAll('\n', ', ') ?? 'without a name';
    if (validToDate.getTime() <= nowMs) throw new TlsError(key, `the certificate ${name} expired on ${validToDate.toISOString()}`);
    if (validFromDate.getTime() > nowMs) throw new TlsError(key, `the certificate ${name} is not valid before ${validFromDate.toISOString()}`);
  }
}
