import { hkdfSync, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { redactionMarker } from './config/secrets.ts';
import { type Keyring, KeyringError } from './keyring.ts';
import { checkPrivate, createOwnFile, readOwnFile, replaceOwnFile, UnsafePathError } from './private-file.ts';

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
  /** Logins of agents' browsers in the database. */
  | 'browser'
  /** Offsets of agents' heartbeats in their interval, and digests of the configuration that one was stopped under. */
  | 'heartbeat'
  /** Digests of the bearers of scripts in the database. */
  | 'capability'
  /** Digests of pairing codes of channels in the database. */
  | 'pairing'
  /** Codes by which people name approvals in chats. */
  | 'approval-codes'
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

/** The place where an installation keeps its root key: the file in the home folder has either the key or the entry of the keyring. */
export type KeyPlace = 'file' | 'keyring';

interface StoredKey {
  /** 64 hexadecimal digits. */
  readonly root: string;
  readonly key: InstallKey;
  readonly place: KeyPlace;
}

/**
 * Reads the key of the installation, from the system's keyring when the file refers to it, or creates it (0600) when there is no file. Fails with an
 * UnsafePathError, also when the keyring cannot be read: a new key in its place would make tokens and secrets void.
 */
export function openInstallKey(path: string, keyring: Keyring): { readonly key: InstallKey; readonly created: boolean; readonly place: KeyPlace } {
  const found = read(path, keyring);
  if (found !== undefined) return { key: found.key, created: false, place: found.place };
  const root = randomBytes(32);
  if (createOwnFile(path, `${root.toString('hex')}\n`)) return { key: new InstallKey(root), created: true, place: 'file' };
  const others = read(path, keyring);
  if (others === undefined) throw new UnsafePathError(path, 'appeared and vanished while it was read');
  return { key: others.key, created: false, place: others.place };
}

/**
 * Moves the key between the file and the system's keyring; `moved` is false when it is there already. Undefined when the installation has none yet. The file is replaced as a whole, and only after the keyring has returned the key that was written. The entry of the keyring stays when the key moves
 * back: its account is the fingerprint, and a copy of this home may have the same.
 */
export function moveInstallKey(
  path: string,
  to: KeyPlace,
  keyring: Keyring,
): { readonly key: InstallKey; readonly place: KeyPlace; readonly moved: boolean } | undefined {
  const found = read(path, keyring);
  if (found === undefined) return undefined;
  const { root, key, place } = found;
  if (place === to) return { key, place, moved: false };
  if (to === 'file') replaceOwnFile(path, `${root}\n`);
  else {
    const account = key.fingerprint();
    try {
      keyring.write(account, root);
      if (keyring.read(account) !== root) throw new KeyringError('did not return the key that was written');
    } catch (error) {
      throw new UnsafePathError(path, `keeps the install key, because the system's keyring ${reasonOf(error)}`, { cause: error });
    }
    replaceOwnFile(path, `keyring ${account}\n`);
  }
  return { key, place: to, moved: true };
}

function read(path: string, keyring: Keyring): StoredKey | undefined {
  const file = readOwnFile(path, { maxBytes: 256 });
  if (file === undefined) return undefined;
  checkPrivate(path, file.stats, '600');
  const text = file.text.trim();
  const account = /^keyring ([0-9a-f]{16})$/.exec(text)?.[1];
  if (account !== undefined) return { ...readFromKeyring(path, account, keyring), place: 'keyring' };
  if (!isRoot(text))
    throw new UnsafePathError(
      path,
      'expected 64 hexadecimal digits; restore it from a backup (without it the tokens of the database are void), or delete it to begin with a new key',
    );
  return { root: text, key: keyOf(text), place: 'file' };
}

function readFromKeyring(path: string, account: string, keyring: Keyring): Pick<StoredKey, 'root' | 'key'> {
  let root: string | undefined;
  try {
    root = keyring.read(account);
  } catch (error) {
    throw new UnsafePathError(
      path,
      `the install key is in the system's keyring, which ${reasonOf(error)}. Unlock the keyring and start again from the session of its user; a service without a session needs the key in a file (gatehouse secrets key --file) or GATEHOUSE_MASTER_KEY_FILE. No new key was made`,
      { cause: error },
    );
  }
  if (root === undefined || !isRoot(root) || keyOf(root).fingerprint() !== account)
    throw new UnsafePathError(
      path,
      `the install key is in the system's keyring, which has ${root === undefined ? 'no entry' : 'another value in the entry'} ${account} of the service gatehouse. Start as the user who moved the key there, or restore a copy of the key into this file. No new key was made`,
    );
  return { root, key: keyOf(root) };
}

function isRoot(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

function keyOf(root: string): InstallKey {
  return new InstallKey(Buffer.from(root, 'hex'));
}

function reasonOf(error: unknown): string {
  if (error instanceof KeyringError) return error.message;
  throw error;
}
