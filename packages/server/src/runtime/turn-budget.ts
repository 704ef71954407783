import type { ModelInfo } from '../llm/model.ts';
import type { CallRecord } from './turn.ts';

/** Hard caps beyond the turn's own tokens, checked before each model call of one turn. */
export interface TurnBudget {
  /**
   * Reserves what the call may use at most under every cap before anything is sent; `inputTokens` are counted, `maxOutputTokens`
   * is the longest answer. Undefined while there are no caps: then `spend` charges each attempt.
   */
  reserve(call: {
    readonly models: readonly ModelInfo[];
    readonly inputTokens: number;
    readonly maxOutputTokens: number;
  }): Reservation | BudgetRefusal | undefined;
  /** Charges an attempt without a reservation. */
  spend(call: CallRecord): void;
}

export interface Reservation {
  /** May be lower than requested: what the caps still allow. */
  readonly maxOutputTokens: number;
  /** The cap that made it lower. */
  readonly cappedBy?: Refused;
  /** Under a cap in money the reserve is stored first, so that a crash cannot lose it; no call is made before this resolves. */
  readonly stored?: Promise<void>;
  /** After failed attempts: whether one more is covered on top of what they used. */
  covers(attempts: readonly CallRecord[]): boolean | Promise<boolean>;
  /** Replaces the reserve by what the attempts really used. Call it exactly once, also when nothing was sent. */
  settle(attempts: readonly CallRecord[]): void;
}

export interface BudgetRefusal {
  readonly refused: Refused;
}

/** The cap that refuses a call. */
export interface Refused {
  /** The configuration key, such as `agents.default.budgets.perDayUsd`. */
  readonly cap: string;
  /** Tokens or US dollars, depending on the key. */
  readonly limit: number;
  readonly used: number;
  readonly retryAfterMs?: number;
  /** Not a cap: the run was stopped. */
  readonly isRevoked?: true;
  /** The sentence for the caller. */
  readonly message: string;
}

/** Builds the refusal of a call that exceeds a cap; `unit` is that of the numbers. */
export function refusal(about: {
  readonly cap: string;
  readonly limit: number;
  readonly used: number;
  /** Held by running calls. */
  readonly reserved?: number;
  readonly unit: 'tokens' | 'USD';
  readonly retryAfterMs?: number;
}): Refused {
  const { cap, limit, used, reserved = 0, unit, retryAfterMs } = about;
  const held = reserved === 0 ? '' : ` and ${reserved} ${unit} held by running calls`;
  const again = retryAfterMs === undefined ? 'this call needs more than is left' : `try again in ${Math.ceil(retryAfterMs / 1000)} s`;
  const message = `The budget ${cap} of ${limit} ${unit} does not allow this call: ${used} ${unit} are used${held}; ${again}`;
  return { cap, limit, used, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
