import { mkdir } from 'node:fs/promises';
import { findChangedFiles, findFolders, type FolderPlaces, isInMovedFolder } from '../../../../kernel/changed-files.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import { listFolderInside, plainPath, removeInside, statInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import type { CommandTaint, Workplace } from '../api.ts';
import { digestContent } from './content-digest.ts';
import { foldName } from './internal-names.ts';
import { closeWindow, openWindow, type StoredWindow, type TaintRow, type Window } from './taint-store.ts';

/** Resolution of file system timestamps. */
const slackMs = 2000;
/** Files of one command that get separate rows; beyond that, their folders do. */
const maxRows = 300;

export interface FileTaintsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Id of this run of the daemon. */
  readonly bootId: string;
}

export interface CommandTaints {
  /** Opens the store of windows and closes those of dead ones, after finding what their commands wrote. */
  settled(place: Workplace, windows: readonly StoredWindow[]): Promise<readonly Window[]>;
  /** Whether a running command may have written the file or moved it here. */
  mayHaveWritten(place: Workplace, path: string, windows: readonly Window[]): Promise<boolean>;
  /** Call before a file of the workspace gets text from outside: running commands may read it from now on. */
  taintRunning(agentId: string): Promise<void>;
  begin(place: Workplace, mayBeTainted: () => Promise<boolean>): Promise<CommandTaint>;
}

/**
 * Tracks what commands may read and write. A command is clean as long as nothing in its workspace holds text from outside; from then
 * on a time window is open, in which everything that changes in the workspace counts as tainted. Windows are stored, and survive a crash.
 */
export function createCommandTaints({ db, clock, log, bootId }: FileTaintsDeps): CommandTaints {
  /** Windows of commands in this process, with the location of every folder when they were opened. */
  const live = new Map<string, Promise<FolderPlaces | undefined>>();
  /** Windows by agent. */
  const running = new Map<string, Set<CommandTaint>>();

  async function settle({ workspaceDir }: Workplace, { id, agentId }: Window, sinceMs: number, before: FolderPlaces | undefined): Promise<void> {
    const changed = await findChangedFiles(workspaceDir, await writableFolders(workspaceDir), sinceMs, before);
    const files = changed.files.length <= maxRows ? changed.files : [];
    const folders = [...changed.folders, ...(files.length === 0 ? foldersOf(changed.files) : [])];
    const rows: Omit<TaintRow, 'agentId'>[] = folders.map((path) => ({ path: foldName(path), name: path, tree: 1, tainted: 1, digest: null }));
    for (const path of files) {
      const digest = (await digestContent(workspaceDir, path)) ?? null;
      rows.push({ path: foldName(plainPath(path)), name: path, tree: 0, tainted: 1, digest });
    }
    await db.write(closeWindow, { agentId, id, atMs: clock.now(), rows });
  }

  async function taintRunning(agentId: string): Promise<void> {
    const clean = [...(running.get(agentId) ?? [])].filter((command) => command.isClean());
    await Promise.all(clean.map((command) => command.taint()));
  }

  function stopped(agentId: string, command: CommandTaint): void {
    const commands = running.get(agentId);
    commands?.delete(command);
    if (commands?.size === 0) running.delete(agentId);
  }

  return {
    taintRunning,

    async settled(place, windows) {
      const isLeft = ({ id, bootId: of, isDead }: StoredWindow) => isDead === 1 || (of === bootId && !live.has(id));
      for (const window of windows) if (isLeft(window)) await settle(place, window, window.sinceMs, undefined);
      return windows;
    },

    async mayHaveWritten({ workspaceDir }, path, windows) {
      const since = Math.min(...windows.map(({ sinceMs }) => sinceMs));
      if (((await statInside(workspaceDir, path))?.ctimeMs ?? Infinity) >= since) return true;
      for (const { id } of windows) {
        const before = await live.get(id);
        if (before !== undefined && (await isInMovedFolder(workspaceDir, plainPath(path), before))) return true;
      }
      return false;
    },

    async begin(place, mayBeTainted) {
      const { agentId, workspaceDir } = place;
      let isClean = true;
      let hasBegun = false;
      let opened: { readonly window: Window; readonly atMs: number } | undefined;
      let opening: Promise<void> | undefined;
      let ending: Promise<void> | undefined;
      const open = async () => {
        const atMs = clock.monotonic();
        const window = { id: newId('tw'), agentId, sinceMs: (await timeOf(workspaceDir)) - slackMs, bootId };
        // A folder that a running command moved just now must not pass for an existing one.
        const untilMs = hasBegun ? window.sinceMs : Infinity;
        const folders = writableFolders(workspaceDir).then((names) => findFolders(workspaceDir, names, untilMs));
        live.set(
          window.id,
          folders.catch(() => undefined),
        );
        await db.write(openWindow, window);
        opened = { window, atMs };
        // Other commands read what this one writes.
        await Promise.all([folders, taintRunning(agentId)]);
      };
      const end = async () => {
        stopped(agentId, command);
        await opening;
        if (opened === undefined) return;
        const { window, atMs } = opened;
        // The system clock may have been set back meanwhile.
        const sinceMs = Math.min(window.sinceMs, (await timeOf(workspaceDir)) - (clock.monotonic() - atMs) - slackMs);
        await settle(place, window, sinceMs, await live.get(window.id)).finally(() => live.delete(window.id));
      };
      const command: CommandTaint = {
        isClean: () => isClean,
        taint() {
          isClean = false;
          return (opening ??= open());
        },
        // Nobody waits for the end of a command in the background. Its window stays stored, and the next read of a file closes it.
        end: () =>
          (ending ??= end().catch((error: unknown) => log.warn({ err: error, agentId }, 'Failed to store what a command wrote; retrying later'))),
      };
      // Registered before the first query, so that no mark made meanwhile is missed.
      running.set(agentId, (running.get(agentId) ?? new Set()).add(command));
      try {
        if (await mayBeTainted()) await command.taint();
        await opening;
      } catch (error) {
        stopped(agentId, command);
        throw error;
      }
      hasBegun = true;
      return command;
    },
  };
}

/** Returns the time of the file system, which stamps its files. */
async function timeOf(workspaceDir: string): Promise<number> {
  await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
  const marker = `.gatehouse/${newId('tw')}`;
  await writeFileInside(workspaceDir, marker, '', { maxBytes: 1 });
  const stat = await statInside(workspaceDir, marker);
  await removeInside(workspaceDir, marker);
  return stat?.ctimeMs ?? -Infinity;
}

/** Folders that commands may write to. */
async function writableFolders(workspaceDir: string): Promise<readonly string[]> {
  const { entries } = await listFolderInside(workspaceDir, '.', 10_000);
  return entries.flatMap(({ name, kind }) => (kind === 'directory' && !name.startsWith('.') ? [name] : []));
}

/** Returns the deepest few folders that contain many files. */
function foldersOf(files: readonly string[]): readonly string[] {
  for (let depth = 8; depth > 1; depth -= 1) {
    const folders = new Set(files.map((file) => file.split('/').slice(0, -1).slice(0, depth).join('/')));
    if (folders.size <= maxRows) return [...folders];
  }
  return [...new Set(files.map((file) => file.split('/')[0] ?? '.'))];
}
