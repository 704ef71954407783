import type { BrowserAct, BrowserConsoleEntry, BrowserTab, Params, Result, ResultInput } from '@gatehouse/contract';

/** Something that happened to a download of a step. */
export interface Downloaded {
  /** Path in the workspace; absent when it failed. */
  readonly path?: string;
  readonly name: string;
  readonly bytes: number;
  readonly error?: string;
}

export interface SnapshotOptions extends Pick<Params<'browser.snapshot'>, 'interactive' | 'compact' | 'depth' | 'selector' | 'maxChars'> {}
export type Snapshot = Result<'browser.snapshot'>;
export type ActResult = ResultInput<'browser.act'>;
export type InputEvents = Params<'browser.input'>['events'];

/** What a step may touch in addition to the page. */
export interface ActContext {
  readonly workspaceDir: string;
  readonly signal: AbortSignal;
}

/** One running Chromium. Every call fails with `unavailable` once it is gone, and within the time limit when it hangs. */
export interface BrowserSession {
  readonly agentId: string;
  readonly chromeVersion: string;
  /** A person has taken over. */
  readonly isHeld: boolean;
  tabs(): Promise<readonly BrowserTab[]>;
  navigate(tabId: string | undefined, url: string, signal: AbortSignal): Promise<Result<'browser.navigate'>>;
  open(url: string | undefined, signal: AbortSignal): Promise<BrowserTab>;
  focus(tabId: string): Promise<string>;
  close(tabId: string | undefined): Promise<void>;
  snapshot(tabId: string | undefined, options: SnapshotOptions, signal: AbortSignal): Promise<Snapshot>;
  screenshot(
    tabId: string | undefined,
    options: Pick<Params<'browser.screenshot'>, 'fullPage' | 'ref' | 'element' | 'type'>,
    signal: AbortSignal,
  ): Promise<{ readonly bytes: Buffer; readonly mimeType: 'image/png' | 'image/jpeg'; readonly width: number; readonly height: number }>;
  /** What a recording keeps of a tab: its address, what references name, and a small JPEG as base64 where one can be drawn. */
  glance(
    tabId: string | undefined,
    refs: readonly string[],
    picture: boolean,
  ): Promise<{ readonly url: string; readonly title: string; readonly names: Readonly<Record<string, string>>; readonly jpeg?: string }>;
  pdf(tabId: string | undefined, signal: AbortSignal): Promise<Buffer>;
  act(tabId: string | undefined, request: BrowserAct, context: ActContext): Promise<ActResult>;
  console(tabId: string | undefined, level: BrowserConsoleEntry['type'] | undefined): Promise<readonly BrowserConsoleEntry[]>;
  view(after: number | undefined, waitMs: number, signal: AbortSignal): Promise<ResultInput<'browser.view'>>;
  hold(held: boolean): void;
  /** Waits until no person has taken over, at most `waitMs`; returns whether that is so. */
  untilFree(waitMs: number, signal: AbortSignal): Promise<boolean>;
  input(events: InputEvents): Promise<number>;
}

/** The browsers of all agents: at most one each. */
export interface Browsers {
  /** Why no browser can be started here, and what helps; undefined when one can. */
  unavailable(): Promise<string | undefined>;
  running(agentId: string): BrowserSession | undefined;
  /** Returns the running one, or starts it. Fails with `unavailable` or `precondition_failed`. */
  start(agentId: string): Promise<BrowserSession>;
  /** Ends it; `forget` also deletes its logins. */
  stop(agentId: string, options?: { readonly forget?: boolean }): Promise<void>;
}

/** What the owner of the browsers uses in addition. */
export interface BrowserEngine extends Browsers, AsyncDisposable {
  /** Lists agents whose browser runs. */
  list(): readonly string[];
}
