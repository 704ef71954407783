import { isDeepStrictEqual } from 'node:util';
import type { InstallKey } from '../../../../kernel/install-key.ts';
import type { Redactor } from '../../../../kernel/redact.ts';
import type { Seal } from '../../../../kernel/seal.ts';
import { readCopy, type SecretCopy, writeCopy } from './copy-file.ts';
import { createSecretSeal } from './seal.ts';

export interface SecretVaultOptions {
  /** The sealed copy in the home folder. */
  readonly file: string;
  readonly key: InstallKey;
  /** Learns every value, whether it is used or not. */
  readonly redactor: Pick<Redactor, 'add'>;
}

/** A secret as the database stores it. */
export interface SealedSecret {
  readonly name: string;
  readonly sealed: string;
}

interface Entry {
  readonly sealed: string;
  /** Undefined when it was sealed with another install key. */
  readonly value: string | undefined;
}

/**
 * The secrets of this process in memory, through the restarts of its server, with the sealed copy in the home folder from which
 * `${NAME}` is resolved while the database is not open. The rows of the database are the truth: `adopt` makes both what they are.
 */
export class SecretVault {
  readonly #options: SecretVaultOptions;
  readonly #seal: Seal;
  readonly #entries = new Map<string, Entry>();
  /** What the file holds. */
  #copy: SecretCopy | undefined;

  /** @throws UnsafePathError when others have access to the copy */
  constructor(options: SecretVaultOptions) {
    this.#options = options;
    this.#seal = createSecretSeal(options.key.derive('secrets'));
    this.#copy = readCopy(options.file);
    for (const [name, sealed] of Object.entries(this.#copy?.secrets ?? {})) this.#keep(name, sealed);
  }

  /** Returns the value of a secret. */
  get(name: string): string | undefined {
    return this.#entries.get(name)?.value;
  }

  isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** All secrets that can be read. */
  readable(): SealedSecret[] {
    return [...this.#entries].flatMap(([name, { sealed, value }]) => (value === undefined ? [] : [{ name, sealed }]));
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** Whether there is a secret that cannot be read. */
  isUnreadable(name: string): boolean {
    return this.has(name) && this.get(name) === undefined;
  }

  /** Returns why some secrets cannot be used and what to do; undefined when all can. */
  fault(): string | undefined {
    const names = [...this.#entries].filter(([, { value }]) => value === undefined).map(([name]) => name);
    if (names.length === 0) return undefined;
    const { key } = this.#options;
    return `The ${names.length === 1 ? 'secret' : 'secrets'} ${names.toSorted().join(', ')} cannot be read: sealed with another install key than that of this installation (fingerprint ${key.fingerprint()}). Use the install key of the installation that they come from, or set them again with "gatehouse secrets set"`;
  }

  /** Returns a value sealed for the database. From now on it is in no output. */
  seal(name: string, value: string): SealedSecret {
    this.#options.redactor.add([value]);
    return { name, sealed: this.#seal.close(name, value) };
  }

  /** Calls `run` as if a secret had another value, or none; nothing may be awaited in it. */
  withCandidate<T>(name: string, value: string | undefined, run: () => T): T {
    const before = this.#entries.get(name);
    this.#entries.set(name, { sealed: '', value });
    try {
      return run();
    } finally {
      if (before === undefined) this.#entries.delete(name);
      else this.#entries.set(name, before);
    }
  }

  put({ name, sealed }: SealedSecret): void {
    this.#keep(name, sealed);
  }

  /** Removes a secret; the returned function undoes it. */
  drop(name: string): () => void {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    return () => void (entry !== undefined && this.#entries.set(name, entry));
  }

  /** Adds those of the database to what is there, before it is open; returns whether a value changed. */
  learn(rows: readonly SealedSecret[]): boolean {
    const before = rows.map(({ name }) => this.get(name));
    for (const { name, sealed } of rows) this.#keep(name, sealed);
    return rows.some(({ name }, index) => before[index] !== this.get(name));
  }

  /** Replaces all secrets by those of the database; returns the names of those whose value changed. */
  adopt(rows: readonly SealedSecret[]): string[] {
    const before = new Map([...this.#entries].map(([name, { value }]) => [name, value]));
    this.#entries.clear();
    for (const { name, sealed } of rows) this.#keep(name, sealed);
    return [...new Set([...before.keys(), ...this.#entries.keys()])].filter((name) => before.get(name) !== this.get(name));
  }

  /** Writes the copy when it is not what is in memory. */
  save(): void {
    const { file, key } = this.#options;
    const secrets = Object.fromEntries([...this.#entries].map(([name, { sealed }]) => [name, sealed] as const).toSorted(byName));
    const copy: SecretCopy = { key: key.fingerprint(), secrets };
    if (isDeepStrictEqual(copy, this.#copy) || (this.#copy === undefined && this.#entries.size === 0)) return;
    writeCopy(file, copy);
    this.#copy = copy;
  }

  #keep(name: string, sealed: string): void {
    const known = this.#entries.get(name);
    if (known?.sealed === sealed) return;
    const value = this.#seal.open(name, sealed);
    if (value !== undefined) this.#options.redactor.add([value]);
    this.#entries.set(name, { sealed, value });
  }
}

function byName([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : 1;
}
