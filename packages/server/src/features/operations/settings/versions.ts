import { createHash } from 'node:crypto';
import { AppError } from '../../../kernel/app-error.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Path } from '../../../kernel/config/config-error.ts';
import { documentValue, type Edit, editDocument } from '../../../kernel/config/edit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Seal } from '../../../kernel/seal.ts';
import type { ConfigVersion } from './api.ts';
import { addConfigVersion, dropConfigVersion, markConfigFile, readConfigState, type SealedVersion } from './store.ts';

export interface VersionsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Names the home folder, whose file may differ from that of another daemon on the same database. */
  readonly homeId: string;
  readonly seal: Seal;
  /** True where several daemons share the database: its newest version is the document, and each file is written from it. */
  readonly isShared: boolean;
  readonly readText: () => string;
  /** Replaces the file as a whole, synced. */
  readonly writeText: (text: string) => void;
  /** Keeps a text that must not get lost next to the file; returns where. */
  readonly keepText: (text: string) => string;
  /** Fails where a start would not accept the text. */
  readonly check: (text: string) => unknown;
}

/** The file as it is when it agrees with the newest version. */
export interface Settled {
  readonly text: string;
  readonly digest: string;
  readonly number: number;
}

export interface SettleOptions {
  /** Also stores an edit by hand that cannot be used. */
  readonly keepInvalid?: boolean;
  /** The file was edited while this daemon stood by: on a shared database such an edit is not used. */
  readonly isStandby?: boolean;
}

/** What a version records in addition to its text. */
export type VersionNote = Pick<ConfigVersion, 'principalId' | 'origin' | 'summary' | 'section' | 'key' | 'traceId'>;

/** Keys that belong to one machine: on a shared database each daemon keeps its own. */
const machineKeys: readonly Path[] = [['gateway', 'host'], ['gateway', 'port'], ['gateway', 'tls'], ['gateway', 'web', 'distPath'], ['storage']];

/** What the version of an edit by hand records. */
export const byHand: Omit<VersionNote, 'summary'> = { principalId: 'owner', origin: 'file', section: null, key: null, traceId: null };

/**
 * The file config.yaml and its versions in the database. A change commits its version first, then replaces the file, then marks it as
 * written; a crash in between is completed by the next start. Calls must not overlap.
 */
export class ConfigVersions {
  readonly #deps: VersionsDeps;

  constructor(deps: VersionsDeps) {
    this.#deps = deps;
  }

  /**
   * Brings the file and the versions together: completes a change that was cut off, writes a version of another daemon to the file, and
   * stores an edit by hand as a version. `isWritten` when the file was replaced.
   * @throws what `check` throws for an edit by hand that cannot be used, unless `keepInvalid`
   */
  async settle({ keepInvalid = false, isStandby = false }: SettleOptions = {}): Promise<Settled & { readonly isWritten: boolean }> {
    const { db, homeId, isShared, readText, log } = this.#deps;
    const text = readText();
    const digest = digestOf(text);
    const { newest, mark } = await db.read(readConfigState, { homeId });
    if (newest === undefined) return { ...(await this.#addFile(text, { ...byHand, summary: 'first start' }, 0)), isWritten: false };
    const settled = { text, digest, number: newest.number, isWritten: false };
    if (mark?.digest === digest && mark.version === newest.number) return settled;
    const wanted = this.#render(newest, text);
    if (wanted !== undefined && digest === digestOf(wanted)) {
      await this.#mark(newest.number, digest);
      return settled;
    }
    const isUntouched = mark?.digest === digest && mark.version < newest.number;
    if (wanted !== undefined && (isUntouched || (isShared && (isStandby || mark?.version !== newest.number)))) {
      if (mark === undefined)
        log.warn(
          { file: this.#deps.keepText(text) },
          'config.yaml of this home, which is new to the database, differs from the newest version: that version is used, and the file was kept next to it',
        );
      else if (!isUntouched)
        log.error(
          { file: this.#deps.keepText(text) },
          'config.yaml was edited while another daemon was the active one: the edit is not used, and was kept next to it',
        );
      return { ...(await this.#write(wanted, newest.number)), isWritten: true };
    }
    if (!keepInvalid) this.#deps.check(text);
    const summary = `edited by hand: ${changedSections(this.#open(newest), text)}`;
    return { ...(await this.#addFile(text, { ...byHand, summary }, newest.number)), isWritten: false };
  }

  /**
   * Stores a text as the newest version and replaces the file. `base` is what it was made from.
   * @throws AppError `conflict` when the file or the versions have changed since, and nothing is changed
   */
  async replace(base: Settled, text: string, note: VersionNote, audit: { readonly row: AuditRow; readonly failed: AuditRow }): Promise<Settled> {
    const { db, readText, log } = this.#deps;
    const version = this.#version(text, note, base.number + 1);
    await db.write(addConfigVersion, { version, audit: audit.row });
    try {
      if (digestOf(readText()) !== base.digest)
        throw new AppError('conflict', 'config.yaml was edited by hand meanwhile, and nothing was changed; read the configuration again');
      this.#deps.writeText(text);
    } catch (error) {
      await db
        .write(dropConfigVersion, { number: version.number, audit: audit.failed })
        .catch((second: unknown) => log.error({ err: second }, 'Failed to drop a version of the configuration that was not written'));
      throw error instanceof AppError ? error : new AppError('unavailable', `config.yaml cannot be written: ${reasonOf(error)}`, { cause: error });
    }
    const digest = digestOf(text);
    // The next call to settle finds the file as it should be.
    await this.#mark(version.number, digest).catch((error: unknown) => log.warn({ err: error }, 'Failed to record that config.yaml was written'));
    return { text, digest, number: version.number };
  }

  /** Returns the text of a version as this daemon would write it; undefined when it was sealed with another key. */
  textFor(version: SealedVersion, current: string): string | undefined {
    return this.#render(version, current);
  }

  /** Returns the text of a version as it was stored; undefined when it was sealed with another key. */
  textOf(version: SealedVersion): string | undefined {
    return this.#open(version);
  }

  async #addFile(text: string, note: VersionNote, after: number): Promise<Settled> {
    const { db, homeId } = this.#deps;
    const version = this.#version(text, note, after + 1);
    await db.write(addConfigVersion, { version, mark: { homeId, version: version.number, digest: version.digest } });
    return { text, digest: version.digest, number: version.number };
  }

  async #write(text: string, number: number): Promise<Settled> {
    this.#deps.writeText(text);
    const digest = digestOf(text);
    await this.#mark(number, digest);
    return { text, digest, number };
  }

  async #mark(version: number, digest: string): Promise<void> {
    await this.#deps.db.write(markConfigFile, { homeId: this.#deps.homeId, version, digest });
  }

  #version(text: string, note: VersionNote, number: number): SealedVersion {
    return { ...note, number, digest: digestOf(text), atMs: this.#deps.clock.now(), sealedText: this.#deps.seal.close('config', text) };
  }

  #open({ sealedText, number }: SealedVersion): string | undefined {
    const text = this.#deps.seal.open('config', sealedText);
    if (text === undefined) this.#deps.log.error({ version: number }, 'A version of the configuration was sealed with another install key');
    return text;
  }

  #render(version: SealedVersion, current: string): string | undefined {
    const text = this.#open(version);
    if (text === undefined || !this.#deps.isShared) return text;
    return withMachineKeys(text, current);
  }
}

/** Returns the digest of a text, by which versions are named. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns `text` with the keys of this machine that `own` has. */
function withMachineKeys(text: string, own: string): string {
  let values: unknown;
  try {
    values = documentValue(own);
  } catch {
    return text;
  }
  return editDocument(
    text,
    machineKeys.map((path): Edit => {
      const value = path.reduce<unknown>((part, key) => (typeof part === 'object' && part !== null ? Reflect.get(part, key) : undefined), values);
      return value === undefined ? { unset: path } : { set: path, value };
    }),
  );
}

/** Names the sections that differ between two texts. */
export function changedSections(before: string | undefined, after: string): string {
  try {
    const [one, other] = [before ?? '', after].map((text) => new Map(Object.entries(Object(documentValue(text)))));
    const names = [...new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])])];
    const changed = names.filter((name) => JSON.stringify(one?.get(name)) !== JSON.stringify(other?.get(name)));
    return changed.length === 0 ? 'comments' : changed.join(', ');
  } catch {
    return 'not valid';
  }
}

function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason.includes('EBUSY') ? `${reason}; a file that is mounted on its own cannot be replaced: mount its folder` : reason;
}
