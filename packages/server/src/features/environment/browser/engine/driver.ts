import type { BrowserAct, BrowserConsoleEntry, BrowserTab, Params, Result } from '@gatehouse/contract';
import type { Browser, BrowserContext, ConsoleMessage, Dialog, Download, Page } from 'playwright-core';
import { AppError } from '../../../../kernel/app-error.ts';
import { systemClock } from '../../../../kernel/clock.ts';
import { sleep } from '../../../../kernel/timers.ts';
import { doStep, referenceOf } from './act.ts';
import { Cover } from './cover.ts';
import type { DriverOptions, FromThread, Requests } from './protocol.ts';
import { Screencast } from './screencast.ts';
import { sentenceOf, within } from './page-time.ts';
import { type Reference, shortenSnapshot } from './snapshot-text.ts';
import type { Tab } from './tab.ts';

type InputEvent = Params<'browser.input'>['events'][number];
type StepResult = Omit<Result<'browser.act'>, 'downloads'>;

const maxEntries = 500;
const maxEntryChars = 2000;
const quickMs = 5_000;
const snapshotMs = 15_000;
const errorPageMs = 1_000;
const settleMs = 200;
const openingMs = 3_000;
const maxActive = 3;
const maxDownloads = 10;
const settling: ReadonlySet<string> = new Set(['click', 'press', 'type', 'evaluate', 'dialog']);
const maxSide = 2000;
const maxPageHeight = 8000;
/** Pictures of a recording. */
const glance = { ms: 1_500, maxSide: 800, quality: 55 };
/** Pictures of the live view where typed secrets have to be hidden in each. */
const covered = { ms: 3_000, maxSide: 1600, quality: 60 };
const maxPdfBytes = 20 * 1024 * 1024;
const maxStateChars = 4 * 1024 * 1024;

/** Drives the tabs of one browser; runs in its thread. */
export class Driver {
  readonly #browser: Browser;
  readonly #context: BrowserContext;
  readonly #options: DriverOptions;
  readonly #post: (message: FromThread) => void;
  readonly #tabs = new Map<string, Tab>();
  readonly #screencast = new Screencast();
  readonly #cover: Cover;
  #front: string | undefined;
  #last = 0;
  /** Downloads in progress, and those since the last step: a page starts as many as it wants, on the disk of the daemon. */
  #active = 0;
  #downloads = 0;
  /** Pages that are about to open. */
  #opening = 0;

  private constructor(browser: Browser, context: BrowserContext, options: DriverOptions, post: (message: FromThread) => void) {
    this.#browser = browser;
    this.#context = context;
    this.#options = options;
    this.#post = post;
    this.#cover = new Cover(context);
    context.on('page', (page) => {
      this.#opening = Math.max(0, this.#opening - 1);
      this.#add(page);
    });
  }

  /** Playwright reports a page that another one opens only when it has an address. */
  async #noticePages(): Promise<void> {
    const session = await this.#browser.newBrowserCDPSession();
    session.on('Target.targetCreated', ({ targetInfo: { type, openerId } }) => {
      if (type === 'page' && openerId !== undefined) this.#opening += 1;
    });
    await session.send('Target.setDiscoverTargets', { discover: true });
  }

  static async start(browser: Browser, options: DriverOptions, post: (message: FromThread) => void): Promise<Driver> {
    const base = { viewport: { width: options.width, height: options.height }, acceptDownloads: true, permissions: [] };
    const open = (state: object) => browser.newContext({ ...base, ...state });
    // Storage that cannot be restored costs a login, not the browser.
    const context = options.state === undefined ? await open({}) : await open({ storageState: JSON.parse(options.state) }).catch(() => open({}));
    context.setDefaultTimeout(quickMs);
    const driver = new Driver(browser, context, options, post);
    await driver.#noticePages();
    return driver;
  }

  get chromeVersion(): string {
    return this.#browser.version();
  }

  async tabs(): Promise<BrowserTab[]> {
    return Promise.all([...this.#tabs.values()].map((tab) => this.#describe(tab)));
  }

  async open({ url }: Requests['open']): Promise<BrowserTab> {
    if (this.#tabs.size >= this.#options.maxTabs)
      throw new AppError('precondition_failed', `${this.#options.maxTabs} tabs are open, which is the limit (browser.maxTabs): close one first`);
    const page = await this.#context.newPage();
    const tab = this.#add(page);
    this.#front = tab.id;
    if (url !== undefined && url !== 'about:blank') await this.#goTo(tab, url);
    return this.#describe(tab);
  }

  async navigate({ tabId, url }: Requests['navigate']) {
    const tab = await this.#tabToNavigate(tabId);
    const status = await this.#goTo(tab, url);
    const { type: _, active: __, ...page } = await this.#describe(tab);
    return { ...page, ...(status !== undefined && { status }) };
  }

  /** Returns a new tab where there is none, or instead of one that crashed. */
  async #tabToNavigate(tabId: string | undefined): Promise<Tab> {
    const known = tabId === undefined && this.#tabs.size === 0 ? undefined : this.#tab(tabId);
    if (known?.isCrashed === false) return this.#usable(known.id);
    if (known !== undefined) {
      await within(quickMs, known.page.close()).catch(() => {});
      this.#remove(known);
    }
    return this.#tab((await this.open({ url: undefined })).tabId);
  }

  async focus({ tabId }: Requests['focus']): Promise<string> {
    const tab = this.#tab(tabId);
    this.#front = tab.id;
    if (tab.dialog === undefined) await within(quickMs, tab.page.bringToFront());
    return tab.id;
  }

  async close({ tabId }: Requests['close']): Promise<void> {
    const tab = this.#tab(tabId);
    await tab.dialog?.dismiss().catch(() => {});
    await within(quickMs, tab.page.close());
    this.#remove(tab);
  }

  async snapshot({ tabId, interactive, compact, depth, selector, maxChars = 30_000 }: Requests['snapshot']) {
    const tab = this.#usable(tabId, { withDialog: true });
    const { dialog } = tab;
    const of = dialog === undefined ? this.#cover.maskFields(await this.#tree(tab, selector, depth)) : '';
    const { text, refs, isTruncated, stats } = shortenSnapshot(of, {
      maxChars,
      ...(interactive !== undefined && { interactive }),
      ...(compact !== undefined && { compact }),
    });
    tab.refs = refs;
    const { type: _, active: __, ...page } = await this.#describe(tab);
    return {
      ...page,
      snapshot: text,
      refs: { ...refs },
      ...(isTruncated && { truncated: true }),
      stats,
      ...(dialog !== undefined && { dialog: describeDialog(dialog) }),
    };
  }

  async screenshot({ tabId, fullPage = false, ref, element, type = 'png' }: Requests['screenshot']) {
    const tab = this.#usable(tabId);
    const { page } = tab;
    const locator =
      ref !== undefined ? page.locator(`aria-ref=${referenceOf(ref)}`) : element !== undefined ? page.locator(element).first() : undefined;
    if (locator !== undefined) await locator.scrollIntoViewIfNeeded({ timeout: quickMs }).catch(toStepError(ref ?? element ?? ''));
    const session = await this.#context.newCDPSession(page);
    try {
      const metrics = await within(quickMs, session.send('Page.getLayoutMetrics'));
      const { cssLayoutViewport: view, cssContentSize: content } = metrics;
      const origin = { x: view.pageX, y: view.pageY };
      const box = locator === undefined ? undefined : await locator.boundingBox({ timeout: quickMs });
      if (locator !== undefined && box === null) throw new AppError('precondition_failed', 'The element is not visible: it has no picture');
      const area =
        box !== undefined && box !== null
          ? { x: box.x + origin.x, y: box.y + origin.y, width: box.width, height: Math.min(box.height, maxPageHeight) }
          : fullPage
            ? { x: 0, y: 0, width: content.width, height: Math.min(content.height, maxPageHeight) }
            : { ...origin, width: view.clientWidth, height: view.clientHeight };
      const scale = Math.min(1, maxSide / Math.max(area.width, area.height, 1));
      const clip = { ...area, width: Math.max(1, area.width), height: Math.max(1, area.height), scale };
      const options = { format: type, ...(type === 'jpeg' && { quality: 80 }), clip, captureBeyondViewport: fullPage || box !== undefined };
      const { data } = await this.#cover.around(page, () => within(snapshotMs, session.send('Page.captureScreenshot', options)));
      const size = { width: Math.max(1, Math.round(area.width * scale)), height: Math.max(1, Math.round(area.height * scale)) };
      return { base64: data, mimeType: type === 'png' ? ('image/png' as const) : ('image/jpeg' as const), ...size };
    } finally {
      await session.detach().catch(() => {});
    }
  }

  /** Returns what a recording keeps of a tab: a small picture where it can be drawn, and what references of its last snapshot name. */
  async glance({ tabId, refs, picture }: Requests['glance']) {
    const tab = this.#tab(tabId);
    const names = Object.fromEntries(refs.map((ref) => [ref, describeReference(tab.refs[referenceOf(ref)])]));
    const { url, title } = await this.#describe(tab);
    const jpeg = picture && tab.dialog === undefined && !tab.isCrashed ? await this.#drawSmall(tab.page, glance).catch(() => undefined) : undefined;
    return { url, title, names, ...(jpeg !== undefined && { jpeg }) };
  }

  async #drawSmall(page: Page, { maxSide: side, quality, ms }: typeof glance): Promise<string> {
    const session = await this.#context.newCDPSession(page);
    try {
      const { cssLayoutViewport: view } = await within(ms, session.send('Page.getLayoutMetrics'));
      const scale = Math.min(1, side / Math.max(view.clientWidth, view.clientHeight, 1));
      const clip = { x: view.pageX, y: view.pageY, width: Math.max(1, view.clientWidth), height: Math.max(1, view.clientHeight), scale };
      const options = { format: 'jpeg' as const, quality, clip };
      const { data } = await this.#cover.around(page, () => within(ms, session.send('Page.captureScreenshot', options)));
      return data;
    } finally {
      await session.detach().catch(() => {});
    }
  }

  async pdf({ tabId }: Requests['pdf']): Promise<Uint8Array> {
    const { page } = this.#usable(tabId);
    const bytes = await this.#cover.around(page, () => within(snapshotMs, page.pdf({ printBackground: true })));
    if (bytes.byteLength > maxPdfBytes) throw new AppError('payload_too_large', `The PDF file is larger than ${maxPdfBytes} bytes`);
    return Uint8Array.from(bytes);
  }

  async act({ tabId, step }: Requests['act']): Promise<StepResult> {
    const { kind } = step.request;
    const tab = this.#usable(tabId, { withDialog: true });
    if (tab.dialog !== undefined && kind !== 'dialog' && kind !== 'close')
      return { ok: false, action: kind, error: 'The tab shows a dialog: answer it first (kind "dialog")', dialog: describeDialog(tab.dialog) };
    if (kind === 'close') {
      await this.close({ tabId: tab.id });
      return { ok: true, action: kind };
    }
    if (step.secret !== undefined) this.#cover.add(step.secret.value);
    const before = new Set(this.#tabs.keys());
    this.#downloads = this.#active;
    const outcome = await this.#stepOrDialog(tab, step.request.kind === 'dialog' ? this.#answer(tab, step.request) : doStep(tab, step));
    if (outcome.ok && settling.has(kind)) await this.#settle();
    const opened = [...this.#tabs.values()].find(({ id }) => !before.has(id));
    const address = tab.page.url();
    return {
      action: kind,
      tabId: tab.id,
      targetId: tab.id,
      url: address,
      targetUrl: address,
      ...(tab.dialog !== undefined && { dialog: describeDialog(tab.dialog) }),
      ...outcome,
      ...(outcome.ok && opened !== undefined && { note: `Opened the tab ${opened.id}` }),
    };
  }

  console({ tabId, level = 'debug' }: Requests['console']): readonly BrowserConsoleEntry[] {
    const least = levels.indexOf(level);
    const tab = tabId === undefined && this.#tabs.size === 0 ? undefined : this.#tab(tabId);
    return tab?.entries.filter(({ type }) => levels.indexOf(type) >= least) ?? [];
  }

  async view({ after, waitMs }: Requests['view']) {
    const tab = this.#usable(undefined, { withDialog: true });
    const size = tab.page.viewportSize() ?? { width: this.#options.width, height: this.#options.height };
    const { version, jpeg } = await this.#frame(tab, { after, waitMs });
    const { type: _, active: __, ...page } = await this.#describe(tab);
    return { version, ...size, ...page, ...(jpeg !== undefined && { jpeg }) };
  }

  async #frame(tab: Tab, wanted: { readonly after: number | undefined; readonly waitMs: number }) {
    if (!this.#cover.isNeeded) {
      const frame = await this.#screencast.frame(this.#context, tab, wanted);
      // Otherwise a secret was typed while it was awaited.
      if (!this.#cover.isNeeded) return frame;
    }
    return this.#screencast.drawn(tab, wanted, () => this.#drawSmall(tab.page, covered));
  }

  async input({ events }: Requests['input']): Promise<number> {
    const { page } = this.#usable(undefined);
    let done = 0;
    for (const event of events) {
      await within(quickMs, deliver(page, event));
      done += 1;
    }
    return done;
  }

  /** Returns cookies and storage as JSON; undefined when they are too large to keep. */
  async state(): Promise<string | undefined> {
    const state = await within(quickMs, this.#context.storageState());
    const text = JSON.stringify(state);
    if (text.length <= maxStateChars) return text;
    const cookies = JSON.stringify({ ...state, origins: [] });
    return cookies.length <= maxStateChars ? cookies : undefined;
  }

  async ping(): Promise<void> {
    const session = await this.#browser.newBrowserCDPSession();
    await session.send('Browser.getVersion');
    await session.detach();
  }

  #add(page: Page): Tab {
    const known = [...this.#tabs.values()].find((tab) => tab.page === page);
    if (known !== undefined) return known;
    this.#last += 1;
    const tab: Tab = { id: `t${this.#last}`, page, entries: [], refs: {}, dialog: undefined, isCrashed: false, onDialog: undefined };
    if (this.#tabs.size >= this.#options.maxTabs) {
      void this.#refuse(page);
      return tab;
    }
    this.#tabs.set(tab.id, tab);
    this.#front = tab.id;
    page.on('console', (message) => this.#onConsole(tab, message));
    page.on('pageerror', (error) => this.#record(tab, 'error', error.message));
    page.on('dialog', (dialog) => this.#onDialog(tab, dialog));
    page.on('download', (download) => void this.#onDownload(tab, download));
    page.on('crash', () => {
      tab.isCrashed = true;
      tab.onDialog?.();
    });
    page.on('close', () => this.#remove(tab));
    return tab;
  }

  /** Waits for what a step starts in the page, such as a download or a new tab: it begins a little later. */
  async #settle(): Promise<void> {
    await sleep(systemClock, settleMs);
    for (const until = systemClock.monotonic() + openingMs; this.#opening > 0 && systemClock.monotonic() < until;) await sleep(systemClock, 20);
    this.#opening = 0;
  }

  async #refuse(page: Page): Promise<void> {
    const opener = await page.opener().catch(() => null);
    const tab = [...this.#tabs.values()].find((each) => each.page === opener);
    if (tab !== undefined) this.#record(tab, 'warning', `A further tab was refused: ${this.#options.maxTabs} are open (browser.maxTabs)`);
    await page.close().catch(() => {});
  }

  #remove(tab: Tab): void {
    this.#tabs.delete(tab.id);
    if (this.#front === tab.id) this.#front = [...this.#tabs.keys()].at(-1);
  }

  #onConsole(tab: Tab, message: ConsoleMessage): void {
    const { url, lineNumber, columnNumber } = message.location();
    const type = message.type();
    const at = url === '' ? undefined : `${url.slice(0, 1000)}:${lineNumber + 1}:${columnNumber + 1}`;
    this.#record(tab, type === 'error' || type === 'warning' || type === 'info' || type === 'debug' ? type : 'log', message.text(), at);
  }

  #record(tab: Tab, type: BrowserConsoleEntry['type'], text: string, location?: string): void {
    tab.entries.push({
      type,
      text: text.slice(0, maxEntryChars),
      timestamp: Temporal.Instant.fromEpochMilliseconds(systemClock.now()).toString({ smallestUnit: 'millisecond' }),
      ...(location !== undefined && { location }),
    });
    if (tab.entries.length > maxEntries) tab.entries.shift();
  }

  #onDialog(tab: Tab, dialog: Dialog): void {
    // Asked on the way out: the step has decided to leave.
    if (dialog.type() === 'beforeunload') return void dialog.accept().catch(() => {});
    tab.dialog = dialog;
    tab.onDialog?.();
  }

  async #answer(tab: Tab, { accept, promptText }: Extract<BrowserAct, { kind: 'dialog' }>) {
    const { dialog } = tab;
    if (dialog === undefined) throw new AppError('precondition_failed', 'The tab shows no dialog');
    tab.dialog = undefined;
    await within(quickMs, accept ? dialog.accept(promptText) : dialog.dismiss());
    return {};
  }

  async #onDownload(tab: Tab, download: Download): Promise<void> {
    const name = download.suggestedFilename();
    if (this.#active >= maxActive || this.#downloads >= maxDownloads) {
      this.#record(tab, 'warning', `A download was refused: ${maxActive} at once, and ${maxDownloads} until the next step, are the limit`);
      return void download.cancel().catch(() => {});
    }
    this.#active += 1;
    this.#downloads += 1;
    this.#post({ kind: 'downloading' });
    const path = await download.path().catch(() => undefined);
    this.#active -= 1;
    this.#post({ kind: 'download', name, path });
  }

  /** Runs a step until it is done, a dialog appears or the page crashes. A failed step is a result. */
  async #stepOrDialog(
    tab: Tab,
    step: Promise<{ readonly value?: string }>,
  ): Promise<{ readonly ok: boolean; readonly error?: string; readonly value?: string }> {
    const interrupted = Promise.withResolvers<'interrupted'>();
    tab.onDialog = () => interrupted.resolve('interrupted');
    const outcome = step.then(
      (result) => ({ ok: true, ...result }),
      (error: unknown) => ({ ok: false, error: sentenceOf(error) }),
    );
    const first = await Promise.race([outcome, interrupted.promise]);
    tab.onDialog = undefined;
    if (first !== 'interrupted') return first;
    return tab.isCrashed ? { ok: false, error: crashed } : { ok: true };
  }

  async #tree(tab: Tab, selector: string | undefined, depth: number | undefined): Promise<string> {
    const options = { mode: 'ai' as const, timeout: snapshotMs, ...(depth !== undefined && { depth }) };
    if (selector === undefined) return within(snapshotMs, tab.page.ariaSnapshot(options));
    return tab.page.locator(selector).first().ariaSnapshot(options).catch(toStepError(selector));
  }

  async #goTo(tab: Tab, url: string, again = true): Promise<number | undefined> {
    try {
      const response = await tab.page.goto(url, { timeout: this.#options.timeoutMs, waitUntil: 'domcontentloaded' });
      return response?.status();
    } catch (error) {
      const text = error instanceof Error ? error.message : '';
      // What is saved instead of shown does not fail.
      if (/Download is starting|ERR_ABORTED/.test(text)) return undefined;
      // The page went elsewhere while it loaded, or the error page of an earlier address appeared only now.
      if (/interrupted by another navigation to "(?!chrome-error)/.test(text)) {
        await tab.page.waitForLoadState('domcontentloaded', { timeout: this.#options.timeoutMs });
        return undefined;
      }
      if (again && /interrupted by another navigation/.test(text)) return this.#goTo(tab, url, false);
      // Until the browser shows its error page, a next address would be interrupted by it.
      await tab.page.waitForURL(/^chrome-error:/, { timeout: errorPageMs }).catch(() => {});
      if (/Timeout [\d.]+ms exceeded/.test(text))
        throw new AppError('timeout', `The page did not load within ${this.#options.timeoutMs} ms (browser.timeoutMs)`);
      throw new AppError('unavailable', `The page could not be opened: ${sentenceOf(error)}`);
    }
  }

  async #describe(tab: Tab): Promise<BrowserTab> {
    const url = tab.page.url();
    const title = tab.dialog !== undefined || tab.isCrashed ? '' : await within(1_000, tab.page.title()).catch(() => '');
    return {
      tabId: tab.id,
      targetId: tab.id,
      url: url.slice(0, 8192),
      targetUrl: url.slice(0, 8192),
      title: title.slice(0, 500),
      type: 'page',
      active: tab.id === this.#front,
    };
  }

  #tab(tabId: string | undefined): Tab {
    const tab = this.#tabs.get(tabId ?? this.#front ?? '');
    if (tab !== undefined) return tab;
    if (tabId !== undefined) throw new AppError('not_found', `No tab has the id ${tabId}: list them with browser.tabs`);
    throw new AppError('precondition_failed', 'No tab is open: open a page with browser.navigate first');
  }

  #usable(tabId: string | undefined, { withDialog = false }: { readonly withDialog?: boolean } = {}): Tab {
    const tab = this.#tab(tabId);
    if (tab.isCrashed) throw new AppError('unavailable', crashed);
    if (tab.dialog !== undefined && !withDialog)
      throw new AppError('conflict', `The tab shows a dialog (${tab.dialog.type()}): answer it first with browser.act, kind "dialog"`);
    return tab;
  }
}

const levels: readonly BrowserConsoleEntry['type'][] = ['debug', 'log', 'info', 'warning', 'error'];
const crashed = 'The page crashed, perhaps because it needed too much memory: close the tab or open another page';

const describeReference = (reference: Reference | undefined): string =>
  reference === undefined ? '' : `${reference.role}${reference.name === undefined ? '' : ` ${JSON.stringify(reference.name.slice(0, 120))}`}`;

const describeDialog = (dialog: Dialog) => ({ type: dialog.type(), message: dialog.message().slice(0, 2000) });

async function deliver(page: Page, event: InputEvent): Promise<void> {
  switch (event.type) {
    case 'click':
      return page.mouse.click(event.x, event.y, { clickCount: event.clicks });
    case 'move':
      return page.mouse.move(event.x, event.y);
    case 'scroll':
      await page.mouse.move(event.x, event.y);
      return page.mouse.wheel(event.dx, event.dy);
    case 'text':
      return page.keyboard.insertText(event.text);
    case 'key':
      return page.keyboard.press(event.key);
  }
}

function toStepError(what: string): (error: unknown) => never {
  return (error) => {
    throw new AppError('precondition_failed', `${what}: ${sentenceOf(error)}`);
  };
}
