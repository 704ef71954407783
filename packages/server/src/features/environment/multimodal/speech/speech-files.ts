import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import { listInside, makeFoldersInside, removeInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { FileTaints, WorkspaceCapacity } from '../../workspace/api.ts';

const folder = 'media/tts';
const keepMs = 3_600_000;
const retryMs = 600_000;
const maxBytes = 67_108_864;
const ours = /^tts-[0-9a-z-]{8,64}\.[a-z0-9]{2,5}$/;

export interface SpeechFilesDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: { list(): readonly Pick<Agent, 'id' | 'workspaceDir'>[] };
  readonly capacity: Pick<WorkspaceCapacity, 'assertCapacity'>;
  readonly taints: Pick<FileTaints, 'mark' | 'forget'>;
}

/** Speech in workspaces, each file for one hour. */
export class SpeechFiles implements Disposable {
  readonly #deps: SpeechFilesDeps;
  #cancel: (() => void) | undefined;
  #ended = false;

  constructor(deps: SpeechFilesDeps) {
    this.#deps = deps;
  }

  /** Stores a file; returns its path in the workspace. */
  async write(agent: Pick<Agent, 'id' | 'workspaceDir'>, bytes: Uint8Array, extension: string, tainted: boolean): Promise<string> {
    const { capacity, taints } = this.#deps;
    await capacity.assertCapacity(agent.workspaceDir, { bytes: bytes.byteLength, files: 1 });
    await makeFoldersInside(agent.workspaceDir, [folder]);
    const path = `${folder}/${newId('tts').replace('_', '-')}.${extension}`;
    const place = { agentId: agent.id, workspaceDir: agent.workspaceDir };
    if (tainted) await taints.mark(place, path, true, bytes);
    await writeFileInside(agent.workspaceDir, path, bytes, { maxBytes });
    if (!tainted) await taints.mark(place, path, false, bytes);
    this.schedule(keepMs);
    return path;
  }

  /** Removes old files after this time, and again as long as there are any. */
  schedule(ms: number): void {
    if (this.#cancel !== undefined || this.#ended) return;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#cancel = undefined;
      void this.#sweep().then((nextMs) => {
        if (nextMs !== undefined) this.schedule(nextMs);
      });
    });
  }

  /** Removes files older than an hour; returns when the next one is due, or a folder that failed is tried again. */
  async #sweep(): Promise<number | undefined> {
    let nextMs: number | undefined;
    for (const agent of this.#deps.agents.list()) {
      const dueMs = await this.#sweepFolder(agent).catch((error: unknown) => {
        this.#deps.log.warn({ err: error, agentId: agent.id }, 'Failed to remove old speech files');
        return retryMs;
      });
      if (dueMs !== undefined) nextMs = Math.min(nextMs ?? keepMs, dueMs);
    }
    return nextMs === undefined ? undefined : Math.max(1_000, nextMs);
  }

  async #sweepFolder(agent: Pick<Agent, 'id' | 'workspaceDir'>): Promise<number | undefined> {
    const nowMs = this.#deps.clock.ageNow();
    let nextMs: number | undefined;
    for (const { name, mtimeMs } of await listInside(agent.workspaceDir, folder).catch(nothingThere)) {
      if (!ours.test(name)) continue;
      // A clock that went back makes files from the future.
      const leftMs = Math.min(keepMs, mtimeMs + keepMs - nowMs);
      if (leftMs > 0) nextMs = Math.min(nextMs ?? keepMs, leftMs);
      else if (await removeInside(agent.workspaceDir, `${folder}/${name}`))
        await this.#deps.taints.forget({ agentId: agent.id, workspaceDir: agent.workspaceDir }, `${folder}/${name}`);
    }
    return nextMs;
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#cancel?.();
  }
}

function nothingThere(error: unknown): readonly [] {
  if (error instanceof AppError) return [];
  throw error;
}
