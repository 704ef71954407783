import type { BrowserAct, BrowserConsoleEntry, Params } from '@gatehouse/contract';

/** What the thread of a browser is asked; its answers have the types of `Driver`. */
export interface Requests {
  open: { readonly url: string | undefined };
  navigate: { readonly tabId: string | undefined; readonly url: string };
  tabs: object;
  focus: { readonly tabId: string };
  close: { readonly tabId: string | undefined };
  snapshot: { readonly tabId: string | undefined } & Pick<Params<'browser.snapshot'>, 'interactive' | 'compact' | 'depth' | 'selector' | 'maxChars'>;
  screenshot: { readonly tabId: string | undefined } & Pick<Params<'browser.screenshot'>, 'fullPage' | 'ref' | 'element' | 'type'>;
  glance: { readonly tabId: string | undefined; readonly refs: readonly string[]; readonly picture: boolean };
  pdf: { readonly tabId: string | undefined };
  act: { readonly tabId: string | undefined; readonly step: Step };
  console: { readonly tabId: string | undefined; readonly level: BrowserConsoleEntry['type'] | undefined };
  view: { readonly after: number | undefined; readonly waitMs: number };
  input: Pick<Params<'browser.input'>, 'events'>;
  state: object;
  ping: object;
}
export type RequestName = keyof Requests;

/** A file to upload, read from the workspace. */
export interface UploadFile {
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

/** A step with what the daemon has looked up for it: the thread sees neither the store of secrets nor workspaces. */
export interface Step {
  readonly request: BrowserAct;
  /** Value of the secret of `type`, and where it may be typed. */
  readonly secret?: { readonly value: string; readonly origins: readonly string[] };
  /** Files of `upload`. */
  readonly files?: readonly UploadFile[];
}

export interface DriverOptions {
  readonly artifactsDir: string;
  readonly width: number;
  readonly height: number;
  readonly maxTabs: number;
  /** Limit for opening a page, in milliseconds. */
  readonly timeoutMs: number;
  /** Cookies and storage of the last time, as JSON. */
  readonly state: string | undefined;
}

export type ToThread =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'gone' }
  | { readonly kind: 'ask'; readonly id: number; readonly name: RequestName; readonly args: unknown };

export type FromThread =
  | { readonly kind: 'ready'; readonly chromeVersion: string }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'send'; readonly text: string }
  /** So many bytes have been read. */
  | { readonly kind: 'read'; readonly bytes: number }
  | { readonly kind: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'error'; readonly id: number; readonly code: string; readonly message: string; readonly param?: string }
  | { readonly kind: 'download'; readonly name: string; readonly path: string | undefined }
  | { readonly kind: 'downloading' };
