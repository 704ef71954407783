import type { BrowserContext, CDPSession } from 'playwright-core';
import { systemClock } from '../../../../kernel/clock.ts';
import { sleep } from '../../../../kernel/timers.ts';
import type { Tab } from './tab.ts';

const quality = 60;
const maxSide = 1600;
/** The browser draws for nobody after this time without a request. */
const watchedMs = 10_000;
const firstMs = 3_000;
const betweenMs = 250;

/** Pictures of the tab in front, drawn only while somebody watches. */
export class Screencast {
  #session: CDPSession | undefined;
  #tabId: string | undefined;
  #version = 0;
  #jpeg: string | undefined;
  #cancel: (() => void) | undefined;
  readonly #waiting = new Set<() => void>();

  /** Returns the current picture, without one when the caller has it; waits for a newer one at most `waitMs`. */
  async frame(
    context: BrowserContext,
    tab: Tab,
    { after, waitMs }: { readonly after: number | undefined; readonly waitMs: number },
  ): Promise<{ readonly version: number; readonly jpeg?: string }> {
    this.#cancel?.();
    this.#cancel = systemClock.after(watchedMs, () => void this.#stop());
    if (this.#tabId !== tab.id) await this.#start(context, tab);
    if (this.#jpeg === undefined) await this.#next(firstMs);
    else if (after === this.#version && waitMs > 0) await this.#next(waitMs);
    if (after === this.#version || this.#jpeg === undefined) return { version: this.#version };
    return { version: this.#version, jpeg: this.#jpeg };
  }

  /** Does the same as `frame`, for a page whose pictures have to be drawn one by one. */
  async drawn(
    tab: Tab,
    { after, waitMs }: { readonly after: number | undefined; readonly waitMs: number },
    draw: () => Promise<string>,
  ): Promise<{ readonly version: number; readonly jpeg?: string }> {
    this.#cancel?.();
    if (this.#session !== undefined) await this.#stop();
    for (const until = systemClock.monotonic() + waitMs; ;) {
      // A dialog stops the page, which nothing can be drawn of.
      const jpeg = tab.dialog === undefined ? await draw().catch(() => undefined) : undefined;
      if (jpeg !== undefined && jpeg !== this.#jpeg) {
        this.#jpeg = jpeg;
        this.#version += 1;
      }
      if (after !== this.#version && jpeg !== undefined) return { version: this.#version, jpeg };
      if (systemClock.monotonic() >= until) return { version: this.#version };
      await sleep(systemClock, betweenMs);
    }
  }

  async #start(context: BrowserContext, tab: Tab): Promise<void> {
    await this.#stop();
    const session = await context.newCDPSession(tab.page);
    this.#session = session;
    this.#tabId = tab.id;
    session.on('Page.screencastFrame', ({ data, sessionId }) => {
      void session.send('Page.screencastFrameAck', { sessionId }).catch(() => {});
      if (this.#session !== session) return;
      this.#jpeg = data;
      this.#version += 1;
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    });
    if (tab.dialog === undefined) await tab.page.bringToFront().catch(() => {});
    await session.send('Page.startScreencast', { format: 'jpeg', quality, maxWidth: maxSide, maxHeight: maxSide }).catch(() => {});
  }

  async #next(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const cancel = systemClock.after(ms, resolve);
    await promise;
    cancel();
    this.#waiting.delete(resolve);
  }

  async #stop(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#tabId = undefined;
    this.#jpeg = undefined;
    await session?.detach().catch(() => {});
  }
}
