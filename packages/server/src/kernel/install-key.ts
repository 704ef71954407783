import { hkdfSync, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { redactionMarker } from './config/secrets.ts';
import { checkPrivate, createOwnFile, readOwnFile, UnsafePathError } from './private-file.ts';

/** What the root key is used for. Each purpose has a separate key, so that a leaked one reveals nothing about the others. */
export type KeyPurpose =
  /** Digests of access tokens in the database. */
  | 'pepper'
  /** Markers around untrusted text of `/v1`. */
  | 'fence'
  /** Headers of stored MCP servers in the database. */
  | 'mcp'
  /** Versions of config.yaml in the database. */
  | 'config'
  /** Values of the secret store. */
  | 'secrets'
  /** Offsets of agents' heartbeats in their interval, and digests of the configuration that one was stopped under. */
  | 'heartbeat'
  /** Digests of the bearers of scripts in the database. */
  | 'capability'
  /** What identifies the key in a database that several installations share. */
  | 'fingerprint';

/** The root key of an installation. It is never shown: not in logs, not in JSON, not in the inspector. */
export class InstallKey {
  readonly #root: Buffer;

  constructor(root: Buffer) {
    if (root.length !== 32) throw new RangeError(`expected 32 bytes, found ${root.length}`);
    this.#root = root;
  }

  /** Returns 32 bytes for this installation and purpose (HKDF-SHA-256); always the same. */
  derive(purpose: KeyPurpose): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#root, '', `gatehouse/${purpose}/v1`, 32));
  }

  /** Returns 16 hexadecimal digits that identify the key and reveal nothing about it. */
  fingerprint(): string {
    return this.derive('fingerprint').toString('hex', 0, 8);
  }

  toString(): string {
    return redactionMarker;
  }

  toJSON(): string {
    return redactionMarker;
  }

  [inspect.custom](): string {
    return `InstallKey ${redactionMarker}`;
  }
}

/** Reads the key of the installation, or creates it (0600) when there is none. Fails with an UnsafePathError. */
export function openInstallKey(path: string): { readonly key: InstallKey; readonly created: boolean } {
  const found = read(path);
  if (found !== undefined) return { key: found, created: false };
  const root = randomBytes(32);
  if (createOwnFile(path, `${root.toString('hex')}\n`)) return { key: new InstallKey(root), created: true };
  const others = read(path);
  if (others === undefined) throw new UnsafePathError(path, 'appeared and vanished while it was read');
  return { key: others, created: false };
}

function read(path: string): InstallKey | undefined {
  const file = readOwnFile(path, { maxBytes: 256 });
  if (file === undefined) return undefined;
  checkPrivate(path, file.stats, '600');
  const hex = file.text.trim();
  if (!/^[0-9a-f]{64}$/.test(hex))
    throw new UnsafePathError(
      path,
      'expected 64 hexadecimal digits; restore it from a backup (without it the tokens of the database are void), or delete it to begin with a new key',
    );
  return new InstallKey(Buffer.from(hex, 'hex'));
}
