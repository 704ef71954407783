import type { ModelInfo } from '../llm/model.ts';
import type { CallRecord } from './turn.ts';

/** Hard caps beyond the turn's own tokens, asked before each model call of one turn. */
export interface TurnBudget {
  /**
   * Takes what the call may use at most off every cap before anything is sent; `inputTokens` are counted, `maxOutputTokens`
   * is the longest answer. Undefined while nothing is capped: then `spend` books each attempt.
   */
  reserve(call: {
    readonly models: readonly ModelInfo[];
    readonly inputTokens: number;
    readonly maxOutputTokens: number;
  }): Reservation | BudgetRefusal | undefined;
  /** Books an attempt that no reservation waits for. */
  spend(call: CallRecord): void;
}

export interface Reservation {
  /** May be lower than asked: what the caps still allow. */
  readonly maxOutputTokens: number;
  /** The cap that made it lower. */
  readonly cappedBy?: Refused;
  /** Under a cap in money the reserve is stored first, so that a crash cannot lose it; no call is made before this resolves. */
  readonly stored?: Promise<void>;
  /** After attempts that failed: whether one more is covered on top of what they used. */
  covers(attempts: readonly CallRecord[]): boolean | Promise<boolean>;
  /** Replaces the reserve by what the attempts really used. To be called exactly once, also when nothing was sent. */
  settle(attempts: readonly CallRecord[]): void;
}

export interface BudgetRefusal {
  readonly refused: Refused;
}

/** Which cap stands against a call. */
export interface Refused {
  /** The configuration key, such as `agents.default.budgets.perDayUsd`. */
  readonly cap: string;
  /** In tokens or US dollars, as the key says. */
  readonly limit: number;
  readonly used: number;
  readonly retryAfterMs?: number;
  /** It is no cap: the run was stopped. */
  readonly isRevoked?: true;
  /** The sentence for the caller. */
  readonly message: string;
}

/** What a cap leaves no room for; `unit` is that of the numbers. */
export function refusal(about: {
  readonly cap: string;
  readonly limit: number;
  readonly used: number;
  /** Held by calls that are under way. */
  readonly reserved?: number;
  readonly unit: 'tokens' | 'USD';
  readonly retryAfterMs?: number;
}): Refused {
  const { cap, limit, used, reserved = 0, unit, retryAfterMs } = about;
  const held = reserved === 0 ? '' : ` and ${reserved} ${unit} held by calls under way`;
  const again = retryAfterMs === undefined ? 'this call needs more than is left' : `there is room again in ${Math.ceil(retryAfterMs / 1000)} s`;
  const message = `The budget ${cap} of ${limit} ${unit} has no room for this call: ${used} ${unit} are used${held}; ${again}`;
  return { cap, limit, used, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
