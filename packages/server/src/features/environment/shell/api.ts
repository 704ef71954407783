import type { Result } from '@gatehouse/contract';

/** A terminal session as people watch and use it. */
export interface Terminal {
  /** Waits for a version after `after`, if given. */
  screen(request: {
    readonly after: number | undefined;
    readonly waitMs: number;
    readonly signal: AbortSignal;
  }): Promise<Omit<Result<'background.screen'>, 'id'>>;
  /** Fails with `invalid_params` for a name that is not a key's. */
  assertKeys(keys: readonly string[]): void;
  type(text: string): Promise<void>;
  press(keys: readonly string[]): Promise<void>;
}

export interface Screens {
  /** Returns a running session. */
  find(id: string): Terminal | undefined;
}
