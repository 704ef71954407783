import { mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import { AppError, toAppError } from '../../../../kernel/app-error.ts';
import type { DialRules } from '../../../../kernel/checked-dial.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import { freeSpaceOf } from '../../../../kernel/disk-space.ts';
import type { FindProgram } from '../../../../kernel/find-program.ts';
import { type GuardedProxy, openGuardedProxy } from '../../../../kernel/guarded-proxy.ts';
import { type Jail, refuseWithout } from '../../../../kernel/jail.ts';
import type { Log } from '../../../../kernel/log.ts';
import { entryInside, makeFoldersInside, writeFileInside } from '../../../../kernel/safe-path.ts';
import { settledWithin } from '../../../../kernel/timers.ts';
import type { FileTaints, WorkspaceCapacity } from '../../workspace/api.ts';
import type { Browsers, Downloaded } from '../api.ts';
import type { BrowserConfig } from '../config.ts';
import { chromiumSpec, findBrowser } from './chromium.ts';
import { type FinishedDownload, RunningBrowser } from './session.ts';

/** Cookies and storage of agents between two browsers, as JSON. */
export interface Profiles {
  load(agentId: string): Promise<string | undefined>;
  save(agentId: string, state: string): Promise<void>;
  remove(agentId: string): Promise<void>;
}

export interface BrowsersDeps {
  /** Programs run in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
  readonly log: Log;
  readonly config: Live<BrowserConfig>;
  readonly jail: () => Promise<Jail>;
  /** How names are resolved and what may be dialled; only tests change it. */
  readonly dial: Pick<DialRules, 'resolve' | 'allowAddresses'>;
  /** Folder for what exists while a browser runs; an agent id is a folder in it. */
  readonly dir: string;
  readonly find?: FindProgram;
  readonly profiles: Profiles;
  readonly secret: (name: string) => string | undefined;
  readonly isInternal: (path: string) => boolean;
  readonly capacity: Pick<WorkspaceCapacity, 'assertCapacity'>;
  readonly taints: Pick<FileTaints, 'mark'>;
}

interface Kept {
  readonly session: RunningBrowser;
  /** Whether it has been used, so that there may be logins to keep. */
  isUsed: boolean;
  cancelSave: (() => void) | undefined;
  saving: Promise<void>;
  /** Settles when nothing of it is left. */
  removed: Promise<void>;
}

const startMs = 30_000;
const checkMs = 10_000;
/** Logins of the last seconds before a crash may be lost. */
const saveAfterMs = 15_000;
const removedMs = 5_000;
const downloads = 'downloads';

/** The browsers of all agents: started on demand, ended when nobody uses them, never two of one agent. */
export class BrowserPool implements Browsers, AsyncDisposable {
  readonly #deps: BrowsersDeps;
  readonly #running = new Map<string, Kept>();
  readonly #starting = new Map<string, Promise<RunningBrowser>>();
  /** Stops in progress: what is being stopped counts as gone. */
  readonly #ending = new Map<string, Promise<void>>();
  #cancelCheck: (() => void) | undefined;
  /** The last download of each agent that is being stored: two that are named alike must not choose the same name. */
  readonly #keeping = new Map<string, Promise<unknown>>();
  #swept: Promise<void> | undefined;
  #isEnded = false;

  constructor(deps: BrowsersDeps) {
    this.#deps = deps;
  }

  async unavailable(): Promise<string | undefined> {
    const { config, find, jail } = this.#deps;
    if (!config.current.enabled) return 'Browsers are switched off: set browser.enabled to true';
    const found = findBrowser(config.current.program, find);
    return 'missing' in found ? found.missing : (await jail()).unavailable;
  }

  running(agentId: string): RunningBrowser | undefined {
    const session = this.#running.get(agentId)?.session;
    return session === undefined || session.isOver || this.#ending.has(agentId) ? undefined : session;
  }

  list(): readonly string[] {
    return [...this.#running.keys()];
  }

  async start(agentId: string): Promise<RunningBrowser> {
    const running = this.running(agentId);
    if (running !== undefined) return running;
    let starting = this.#starting.get(agentId);
    if (starting === undefined) {
      starting = this.#startAfterLast(agentId);
      this.#starting.set(agentId, starting);
    }
    try {
      return await starting;
    } finally {
      if (this.#starting.get(agentId) === starting) this.#starting.delete(agentId);
    }
  }

  async stop(agentId: string, { forget = false }: { readonly forget?: boolean } = {}): Promise<void> {
    // What is asked for from now on starts after this stop.
    const [before, starting] = [this.#ending.get(agentId), this.#starting.get(agentId)];
    this.#starting.delete(agentId);
    const end = (async () => {
      await Promise.allSettled([before, starting]);
      await this.#stop(agentId, forget);
    })();
    this.#ending.set(agentId, end);
    try {
      await end;
    } finally {
      if (this.#ending.get(agentId) === end) this.#ending.delete(agentId);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#cancelCheck?.();
    await Promise.all([...this.#starting.keys(), ...this.#running.keys()].map((agentId) => this.stop(agentId)));
  }

  /** Starts it when the last one is gone: with the logins that were kept or deleted. */
  async #startAfterLast(agentId: string): Promise<RunningBrowser> {
    await this.#ending.get(agentId)?.catch(() => {});
    await this.#running.get(agentId)?.removed;
    return this.#start(agentId);
  }

  async #stop(agentId: string, forget: boolean): Promise<void> {
    const kept = this.#running.get(agentId);
    if (kept !== undefined) {
      kept.cancelSave?.();
      if (kept.isUsed && !forget && !kept.session.isOver) this.#save(kept);
      await kept.saving;
      await kept.session.end('it was stopped');
      await settledWithin(this.#deps.processClock, removedMs, [kept.removed]);
    }
    if (forget) await this.#deps.profiles.remove(agentId);
  }

  async #start(agentId: string): Promise<RunningBrowser> {
    const { config, find, processClock: clock, profiles } = this.#deps;
    if (this.#isEnded) throw new AppError('unavailable', 'The daemon is stopping');
    const current = config.current;
    if (!current.enabled) throw new AppError('unavailable', 'Browsers are switched off: set browser.enabled to true');
    const found = findBrowser(current.program, find);
    if ('missing' in found) throw new AppError('unavailable', found.missing);
    const jail = await this.#deps.jail();
    refuseWithout(jail);
    await this.#makeCapacity();
    const state = await profiles.load(agentId);
    await using unfinished = new AsyncDisposableStack();
    const folder = await this.#prepareFolder(agentId);
    unfinished.defer(() => rm(folder.base, { recursive: true, force: true }).catch(() => {}));
    const { width, height } = current.viewport;
    const proxy = unfinished.use(await this.#openProxy(folder.sockets));
    const running = jail.run(
      chromiumSpec({
        program: found.program,
        socketDir: folder.sockets,
        downloadDir: folder.downloads,
        memoryBytes: current.memoryMb * 1024 * 1024,
        maxDownloadBytes: current.maxDownloadBytes,
        width,
        height,
      }),
    );
    const session = new RunningBrowser(
      {
        ...this.#deps,
        proxy,
        keep: (download, workspaceDir) => this.#keepNext(agentId, download, workspaceDir),
        changed: (changed) => this.#saveLater(changed),
      },
      running,
      { agentId, artifactsDir: folder.downloads, width, height, maxTabs: current.maxTabs, timeoutMs: current.timeoutMs, state },
    );
    unfinished.defer(() => session.end('it did not start'));
    await session.ready(startMs);
    const opened = unfinished.move();
    const kept: Kept = { session, isUsed: false, cancelSave: undefined, saving: Promise.resolve(), removed: Promise.resolve() };
    kept.removed = session.gone.then(async () => {
      kept.cancelSave?.();
      await opened.disposeAsync();
      if (this.#running.get(agentId) === kept) this.#running.delete(agentId);
    });
    this.#running.set(agentId, kept);
    this.#cancelCheck ??= this.#checkLater(clock);
    return session;
  }

  /** Ends the browser that was idle longest when there are as many as may be; fails when all of them are in use. */
  async #makeCapacity(): Promise<void> {
    const { maxBrowsers } = this.#deps.config.current;
    if (this.#running.size + this.#starting.size - 1 < maxBrowsers) return;
    const [idle] = [...this.#running.values()]
      .filter(({ session }) => session.idleMs > checkMs && !session.isHeld)
      .toSorted((a, b) => b.session.idleMs - a.session.idleMs);
    if (idle === undefined)
      throw new AppError(
        'precondition_failed',
        `${maxBrowsers} browsers are in use, which is the limit (browser.maxBrowsers): stop one or try again later`,
      );
    await this.stop(idle.session.agentId);
  }

  /** Makes the private folders of a browser; what a killed daemon left is removed. */
  async #prepareFolder(agentId: string): Promise<{ readonly base: string; readonly sockets: string; readonly downloads: string }> {
    const { dir } = this.#deps;
    // Once, also when the first two start together: the second must not remove what the first one has made.
    this.#swept ??= rm(dir, { recursive: true, force: true });
    await this.#swept;
    const base = `${dir}/${agentId}`;
    await rm(base, { recursive: true, force: true });
    const folder = { base, sockets: `${base}/proxy`, downloads: `${base}/${downloads}` };
    await mkdir(folder.sockets, { recursive: true, mode: 0o700 });
    await mkdir(folder.downloads, { mode: 0o700 });
    return folder;
  }

  /** The path of a socket has at most 107 characters: that of a home folder may have more. */
  async #openProxy(folder: string): Promise<GuardedProxy> {
    await using handle = await open(folder);
    return await openGuardedProxy(`/proc/self/fd/${handle.fd}/proxy.sock`, this.#deps.dial);
  }

  async #keepNext(agentId: string, download: FinishedDownload, workspaceDir: string): Promise<Downloaded> {
    const before = this.#keeping.get(agentId);
    const keeping = Promise.allSettled([before]).then(() => this.#keep(agentId, download, workspaceDir));
    this.#keeping.set(agentId, keeping);
    try {
      return await keeping;
    } finally {
      if (this.#keeping.get(agentId) === keeping) this.#keeping.delete(agentId);
    }
  }

  async #keep(agentId: string, { name, path }: FinishedDownload, workspaceDir: string): Promise<Downloaded> {
    const { config, capacity, taints } = this.#deps;
    const plain = fileNameOf(name);
    if (path === undefined) return { name: plain, bytes: 0, error: await this.#whyUnfinished() };
    try {
      const { size } = await stat(path);
      if (size > config.current.maxDownloadBytes)
        throw new AppError('payload_too_large', `The file is larger than ${config.current.maxDownloadBytes} bytes (browser.maxDownloadBytes)`);
      await capacity.assertCapacity(workspaceDir, { bytes: size, files: 1 });
      const bytes = await readFile(path);
      await makeFoldersInside(workspaceDir, [downloads]);
      const kept = await this.#freeName(workspaceDir, plain);
      await taints.mark({ agentId, workspaceDir }, kept, true, bytes);
      await writeFileInside(workspaceDir, kept, bytes, { maxBytes: config.current.maxDownloadBytes });
      return { name: plain, path: kept, bytes: bytes.byteLength };
    } catch (error) {
      const { code, message } = toAppError(error);
      return { name: plain, bytes: 0, error: code === 'internal' ? 'it could not be stored' : message };
    } finally {
      await rm(path, { force: true }).catch(() => {});
    }
  }

  /** Chromium has one word for all reasons: "canceled". */
  async #whyUnfinished(): Promise<string> {
    const { bytes } = await freeSpaceOf(this.#deps.dir);
    return `The download did not finish: its server or the page ended it, it is too large (browser.maxDownloadBytes), or the disk is too full, where ${(bytes / 1e6).toFixed(1)} MB are free`;
  }

  /** A page must not replace a file by naming a download like it. */
  async #freeName(workspaceDir: string, name: string): Promise<string> {
    const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
    for (let number = 1; number < 1000; number += 1) {
      const path = `${downloads}/${name.slice(0, dot)}${number === 1 ? '' : `-${number}`}${name.slice(dot)}`;
      if ((await entryInside(workspaceDir, path)) === 'missing') return path;
    }
    throw new AppError('precondition_failed', `The folder ${downloads} has too many files of this name`);
  }

  #saveLater(session: RunningBrowser): void {
    const kept = this.#running.get(session.agentId);
    if (kept?.session !== session) return;
    kept.isUsed = true;
    kept.cancelSave ??= this.#deps.processClock.after(saveAfterMs, () => {
      kept.cancelSave = undefined;
      this.#save(kept);
    });
  }

  /** Stores one state after the other. */
  #save(kept: Kept): void {
    const { log, profiles } = this.#deps;
    const { session } = kept;
    kept.saving = kept.saving
      .then(async () => {
        const state = await session.state();
        if (state !== undefined) await profiles.save(session.agentId, state);
      })
      .catch((error: unknown) => log.warn({ err: error, agentId: session.agentId }, 'Failed to keep the logins of a browser'));
  }

  #checkLater(clock: Clock): () => void {
    return clock.after(Math.min(checkMs, this.#deps.config.current.idleMs), () => {
      for (const [agentId, { session }] of this.#running)
        if (session.idleMs >= this.#deps.config.current.idleMs && !session.isHeld) void this.stop(agentId);
      this.#cancelCheck = this.#running.size === 0 || this.#isEnded ? undefined : this.#checkLater(clock);
    });
  }
}

/** Returns a plain name for a download: pages choose it. */
function fileNameOf(name: string): string {
  const plain = name
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{N} ._()+-]/gu, '_')
    .replace(/^[. ]+/, '')
    .slice(-120)
    .trim();
  return plain === '' ? 'download' : plain;
}
