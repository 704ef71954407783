import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Clock } from '../../clock.ts';

/** Checks whether the open files of a database are still those that a restart would find. */
export interface FileWatch extends Disposable {
  /** What happened to the files; undefined while they are in place. */
  fault(): string | undefined;
  /** Checks immediately, because a fault was found. */
  checkNow(): void;
}

export interface FileWatchDeps {
  /** Files that are never replaced while they are open. */
  readonly files: readonly string[];
  /** The write-ahead logs among them: their first bytes are checked too. */
  readonly logs: readonly string[];
  readonly clock: Clock;
  readonly onChange: (fault: string | undefined) => void;
}

const checkMs = 30_000;
/** Shorter, because someone waits for the files to return. */
const faultyCheckMs = 1_000;
/** The first four bytes of a write-ahead log, but for the last bit. */
const logMagic = 0x377f0682;

/**
 * Never opens a database file itself: closing any descriptor of one would release the locks that SQLite holds on it in this
 * process (POSIX). Write-ahead logs carry no locks.
 */
export function watchFiles({ files, logs, clock, onChange }: FileWatchDeps): FileWatch {
  const known = new Map<string, string>();
  let fault: string | undefined;
  let disposed = false;
  let cancel = () => {};
  /** Numbers of checks. One may end after a later one, and then knows less. */
  let lastStarted = 0;
  let lastEnded = 0;

  function again(): void {
    void check().then(() => {
      if (disposed) return;
      cancel();
      cancel = clock.after(fault === undefined ? checkMs : faultyCheckMs, again);
    });
  }

  async function check(): Promise<void> {
    const number = (lastStarted += 1);
    let found: string | undefined;
    for (const file of files) found ??= await faultOf(file);
    if (disposed || number < lastEnded) return;
    lastEnded = number;
    if (found === fault) return;
    const changed = (found === undefined) !== (fault === undefined);
    fault = found;
    if (changed) onChange(fault);
  }

  async function faultOf(file: string): Promise<string | undefined> {
    const identity = await stat(file).then(
      ({ dev, ino }) => `${dev}:${ino}`,
      (error: unknown) => (isMissing(error) ? 'missing' : undefined),
    );
    const before = known.get(file);
    // Some files appear shortly after the start, and a failed check proves nothing.
    if (before === undefined && identity !== 'missing' && identity !== undefined) known.set(file, identity);
    if (identity === 'missing') return before === undefined ? undefined : `${basename(file)} was removed`;
    if (before !== undefined && identity !== undefined && identity !== before) return `${basename(file)} was replaced by another file`;
    return logs.includes(file) && (await isOverwritten(file)) ? `${basename(file)} was overwritten` : undefined;
  }

  again();
  return {
    fault: () => fault,
    checkNow: again,
    [Symbol.dispose]() {
      disposed = true;
      cancel();
    },
  };
}

async function isOverwritten(log: string): Promise<boolean> {
  try {
    await using handle = await open(log, 'r');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    return bytesRead === 4 && (buffer.readUInt32BE(0) & ~1) !== logMagic;
  } catch {
    return false;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
