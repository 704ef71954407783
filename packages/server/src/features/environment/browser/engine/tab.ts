import type { BrowserConsoleEntry } from '@gatehouse/contract';
import type { Dialog, Page } from 'playwright-core';
import type { Reference } from './snapshot-text.ts';

/** A tab. The dialog that it shows blocks it until it is answered. */
export interface Tab {
  readonly id: string;
  readonly page: Page;
  readonly entries: BrowserConsoleEntry[];
  /** What the references of the last snapshot name. */
  refs: Readonly<Record<string, Reference>>;
  dialog: Dialog | undefined;
  isCrashed: boolean;
  /** Called when a dialog appears. */
  onDialog: (() => void) | undefined;
}
