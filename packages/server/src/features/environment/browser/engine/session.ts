import type { BrowserAct, BrowserConsoleEntry } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { GuardedProxy } from '../../../../kernel/guarded-proxy.ts';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import { readFileInside } from '../../../../kernel/safe-path.ts';
import { settledWithin, sleep } from '../../../../kernel/timers.ts';
import type { ActContext, ActResult, BrowserSession, Downloaded, InputEvents, SnapshotOptions } from '../api.ts';
import type { BrowserConfig } from '../config.ts';
import type { DriverOptions, RequestName, Requests, Step } from './protocol.ts';
import { type Answer, BrowserThread } from './thread.ts';

export interface FinishedDownload {
  readonly name: string;
  /** Undefined when it did not finish. */
  readonly path: string | undefined;
}

export interface SessionDeps {
  /** Programs run in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
  readonly config: { readonly current: BrowserConfig };
  readonly proxy: GuardedProxy;
  /** Returns the value of a stored secret or variable. */
  readonly secret: (name: string) => string | undefined;
  readonly isInternal: (path: string) => boolean;
  /** Moves a finished download into the workspace; returns what became of it. */
  readonly keep: (download: FinishedDownload, workspaceDir: string) => Promise<Downloaded>;
  /** Called after steps that may have changed cookies or storage. */
  readonly changed: (session: RunningBrowser) => void;
}

/** The thread answers within the limits of its steps; this is added for the way. */
const graceMs = 1_000;
/** After this time without an answer the browser is asked whether it works; together these are less than the 10 s of the longest hang. */
const slowMs = 4_000;
const pingMs = 4_000;
const readMs = 10_000;
const glanceMs = 3_000;
/** Longest time that an end waits for logins to keep. */
const stateMs = 3_000;
/** Added for the tab that a page is opened in. */
const openMs = 5_000;
const stepMs = 8_000;
const waitStepMs = 20_000;
const maxStepMs = 60_000;
/** Added for what a step starts in the page. */
const settleMs = 3_500;
const maxUploadBytes = 50 * 1024 * 1024;
/** The agent continues when a person who took over has not watched for this time. */
const heldMs = 300_000;

/** One Chromium in the jail with the thread that drives it. */
export class RunningBrowser implements BrowserSession {
  readonly agentId: string;
  /** Settles when all its processes are gone. */
  readonly gone: Promise<void>;
  readonly #deps: SessionDeps;
  readonly #process: JailedProcess;
  readonly #thread: BrowserThread;
  #version = '';
  #usedAt: number;
  #users = 0;
  #heldUntil = -Infinity;
  #downloading = 0;
  #finished: FinishedDownload[] = [];
  #endedBecause: string | undefined;
  #isOver = false;

  constructor(deps: SessionDeps, process: JailedProcess, { agentId, ...options }: DriverOptions & { readonly agentId: string }) {
    this.#deps = deps;
    this.#process = process;
    this.agentId = agentId;
    this.#usedAt = deps.processClock.monotonic();
    let errors = '';
    process.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = `${errors}${text}`.slice(-2000);
    });
    this.#thread = new BrowserThread(deps.processClock, process, options, {
      downloading: () => {
        this.#downloading += 1;
      },
      downloaded: (download) => {
        this.#downloading -= 1;
        this.#finished.push(download);
      },
    });
    this.gone = process.ended.then(({ code, signal, bound }) => {
      this.#isOver = true;
      const limit = bound === 'memory' ? `it needed more than ${deps.config.current.memoryMb} MiB of memory (browser.memoryMb)` : undefined;
      const last = errors.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
      const end = `it ended (${signal ?? `exit code ${code}`}${code === 0 || last === '' ? '' : `: ${last}`}); open a page to start it again`;
      this.#thread.end(this.#endedBecause ?? limit ?? end);
    });
  }

  /** Resolves when it can be driven. */
  async ready(timeoutMs: number): Promise<void> {
    const late = sleep(this.#deps.processClock, timeoutMs).then(() => {
      throw new AppError('unavailable', `The browser did not start within ${timeoutMs} ms`);
    });
    late.catch(() => {});
    this.#version = await Promise.race([this.#thread.ready, late]);
  }

  get chromeVersion(): string {
    return this.#version;
  }

  /** Whether it is gone or being ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isHeld(): boolean {
    return this.#deps.processClock.monotonic() < this.#heldUntil;
  }

  /** Returns how long nobody has used it, in milliseconds; 0 while somebody does. */
  get idleMs(): number {
    return this.#users > 0 ? 0 : this.#deps.processClock.monotonic() - this.#usedAt;
  }

  tabs() {
    return this.#ask('tabs', {}, readMs);
  }

  async navigate(tabId: string | undefined, url: string, signal: AbortSignal) {
    const target = allowedAddress(url);
    const result = await this.#visit(target, () =>
      this.#ask('navigate', { tabId, url: target.href }, this.#deps.config.current.timeoutMs + openMs, signal),
    );
    this.#deps.changed(this);
    return result;
  }

  async open(url: string | undefined, signal: AbortSignal) {
    if (url === undefined) return this.#ask('open', { url }, readMs, signal);
    const target = allowedAddress(url);
    const tab = await this.#visit(target, () => this.#ask('open', { url: target.href }, this.#deps.config.current.timeoutMs + openMs, signal));
    this.#deps.changed(this);
    return tab;
  }

  focus(tabId: string) {
    return this.#ask('focus', { tabId }, readMs);
  }

  async close(tabId: string | undefined) {
    await this.#ask('close', { tabId }, readMs);
  }

  snapshot(tabId: string | undefined, { maxChars = this.#deps.config.current.snapshotMaxChars, ...options }: SnapshotOptions, signal: AbortSignal) {
    return this.#ask('snapshot', { tabId, maxChars, ...options }, 2 * readMs, signal);
  }

  async screenshot(tabId: string | undefined, options: Omit<Requests['screenshot'], 'tabId'>, signal: AbortSignal) {
    const { base64, ...rest } = await this.#ask('screenshot', { tabId, ...options }, 2 * readMs, signal);
    return { bytes: Buffer.from(base64, 'base64'), ...rest };
  }

  /** Is not a use: what is recorded keeps no browser running. */
  glance(tabId: string | undefined, refs: readonly string[], picture: boolean) {
    return this.#thread.ask('glance', { tabId, refs, picture }, glanceMs);
  }

  async pdf(tabId: string | undefined, signal: AbortSignal) {
    return Buffer.from(await this.#ask('pdf', { tabId }, 2 * readMs, signal));
  }

  async act(tabId: string | undefined, request: BrowserAct, context: ActContext): Promise<ActResult> {
    const step = await this.#prepare(request, context);
    const limit = 'timeoutMs' in request && request.timeoutMs !== undefined ? request.timeoutMs : request.kind === 'wait' ? waitStepMs : stepMs;
    // A form of many fields has the limit for each.
    const steps = request.kind === 'fill' ? request.fields.length : 1;
    const result = await this.#ask('act', { tabId, step }, Math.min(limit * steps + settleMs, 2 * maxStepMs), context.signal);
    const downloads = await this.#takeDownloads(context, limit);
    this.#deps.changed(this);
    return { ...result, ...(downloads.length > 0 && { downloads: [...downloads] }) };
  }

  async console(tabId: string | undefined, level: BrowserConsoleEntry['type'] | undefined) {
    return this.#ask('console', { tabId, level }, readMs);
  }

  async view(after: number | undefined, waitMs: number, signal: AbortSignal) {
    if (this.isHeld) this.hold(true);
    return { ...(await this.#ask('view', { after, waitMs }, readMs + waitMs, signal)), held: this.isHeld };
  }

  hold(held: boolean): void {
    this.#heldUntil = held ? this.#deps.processClock.monotonic() + heldMs : -Infinity;
  }

  async untilFree(waitMs: number, signal: AbortSignal): Promise<boolean> {
    const { processClock: clock } = this.#deps;
    const until = clock.monotonic() + waitMs;
    while (this.isHeld && clock.monotonic() < until && !signal.aborted) await sleep(clock, 200, signal);
    return !this.isHeld;
  }

  async input(events: InputEvents) {
    this.hold(true);
    const done = await this.#ask('input', { events }, maxStepMs);
    this.#deps.changed(this);
    return done;
  }

  /** Returns cookies and storage as JSON; undefined when there is nothing to keep. */
  async state(): Promise<string | undefined> {
    return this.#thread.ask('state', {}, stateMs);
  }

  /** Ends it with all its processes. */
  async end(why: string): Promise<void> {
    this.#isOver = true;
    this.#endedBecause ??= why;
    this.#thread.end(why);
    this.#process.kill();
    await settledWithin(this.#deps.processClock, readMs, [this.gone]);
  }

  async #ask<K extends RequestName>(name: K, args: Requests[K], timeoutMs: number, signal?: AbortSignal): Promise<Answer<K>> {
    this.#users += 1;
    const answered = new AbortController();
    void this.#endWhenHung(answered.signal);
    try {
      return await this.#thread.ask(name, args, timeoutMs + graceMs, signal);
    } finally {
      answered.abort();
      this.#users -= 1;
      this.#usedAt = this.#deps.processClock.monotonic();
    }
  }

  /** A browser that does not answer a simple question either has hung: it is ended, which fails what was asked. Opening a page starts another. */
  async #endWhenHung(answered: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.#deps.processClock, slowMs, answered);
      if (answered.aborted) return;
      try {
        await this.#thread.ask('ping', {}, pingMs);
      } catch {
        return this.end('it hung and was ended; open a page to start it again');
      }
    }
  }

  /** Opens an address; a failure of the proxy is reported with its reason. */
  async #visit<T extends object>(target: URL, visit: () => Promise<T>): Promise<T> {
    const host = `${target.hostname}:${target.port === '' ? (target.protocol === 'https:' ? 443 : 80) : target.port}`;
    const { proxy } = this.#deps;
    proxy.takeFailure(host);
    let page: T;
    try {
      page = await visit();
    } catch (error) {
      throw (error instanceof AppError && error.code === 'unavailable' ? proxy.takeFailure(host) : undefined) ?? error;
    }
    const failure = !('status' in page) || page.status === 403 || page.status === 502 ? proxy.takeFailure(host) : undefined;
    if (failure !== undefined) throw failure;
    return page;
  }

  /** Looks up what the thread must not reach: stored secrets, and files of the workspace. */
  async #prepare(request: BrowserAct, { workspaceDir }: ActContext): Promise<Step> {
    if (request.kind === 'type') {
      if ((request.text === undefined) === (request.secret === undefined))
        throw new AppError('invalid_params', 'request: expected either "text" or "secret" for "type"', { param: 'request' });
      if (request.secret === undefined) return { request };
      const allowed = Object.hasOwn(this.#deps.config.current.secrets, request.secret)
        ? this.#deps.config.current.secrets[request.secret]
        : undefined;
      const value = allowed === undefined ? undefined : this.#deps.secret(request.secret);
      if (allowed === undefined || value === undefined)
        throw new AppError('denied', `The secret ${request.secret} may not be typed: browser.secrets must name it, and it must be stored`);
      return { request, secret: { value, origins: allowed.origins } };
    }
    if (request.kind !== 'upload') return { request };
    const files: NonNullable<Step['files']>[number][] = [];
    let left = maxUploadBytes;
    for (const path of request.paths) {
      if (this.#deps.isInternal(path)) throw new AppError('not_found', 'The workspace has no such file', { param: 'request' });
      const bytes = await readFileInside(workspaceDir, path, { maxBytes: left });
      left -= bytes.byteLength;
      files.push({ name: path.slice(path.lastIndexOf('/') + 1), mimeType: 'application/octet-stream', bytes: Uint8Array.from(bytes) });
    }
    return { request, files };
  }

  /** Waits for downloads that a step started; those that take longer are reported by a later step. */
  async #takeDownloads({ workspaceDir, signal }: ActContext, limitMs: number): Promise<readonly Downloaded[]> {
    const { processClock: clock } = this.#deps;
    const until = clock.monotonic() + limitMs;
    while (this.#downloading > 0 && clock.monotonic() < until && !this.#isOver && !signal.aborted) await sleep(clock, 50);
    if (this.#isOver && this.#downloading + this.#finished.length > 0)
      // Its agent may be suspended or deleted.
      throw new AppError('unavailable', `The browser is gone: ${this.#endedBecause ?? 'it ended'}. The step was done; its downloads are not kept`);
    if (signal.aborted) return [];
    const finished = this.#finished.splice(0);
    const kept: Downloaded[] = [];
    for (const download of finished) kept.push(await this.#deps.keep(download, workspaceDir));
    return kept;
  }
}

/** Refuses everything but http, https and the empty page: no files, no pages of the browser itself. */
function allowedAddress(text: string): URL {
  const url = URL.parse(text) ?? URL.parse(`https://${text}`);
  if (url === null) throw new AppError('invalid_params', 'url: expected an address such as https://example.com/', { param: 'url' });
  if (url.href === 'about:blank') return url;
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new AppError('denied', `Addresses of "${url.protocol}" are refused: only http, https and about:blank`);
  if (url.username !== '' || url.password !== '') throw new AppError('denied', 'An address with credentials is refused');
  return url;
}
