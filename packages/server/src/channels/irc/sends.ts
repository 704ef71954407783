import type { SendResult, WireClock } from '../port.ts';
import type { Line } from './line.ts';

/** Kinds of refusals, by the number of the answer. */
const kinds: Readonly<Record<string, string>> = {
  '401': 'no_such_target',
  '403': 'no_such_channel',
  '404': 'cannot_send',
  '407': 'too_many_targets',
  '408': 'cannot_send',
  '411': 'no_target',
  '412': 'no_text',
  '417': 'too_long',
  '439': 'too_fast',
  '477': 'needs_registration',
  '481': 'not_permitted',
  '486': 'needs_registration',
  '531': 'not_accepted',
  '716': 'not_accepted',
};

/** They answer a JOIN, not a message. */
const ofJoins: ReadonlySet<string> = new Set(['405', '437', '471', '473', '474', '475', '476']);
/** They name no target. */
const withoutTarget: ReadonlySet<string> = new Set(['411', '412', '417']);

export const isRefusal = (command: string): boolean => /^[45]\d\d$/.test(command) || command === '716';

interface Pending {
  readonly target: string;
  readonly isLabelled: boolean;
  readonly settle: (result: SendResult) => void;
}

/** Messages that are written and not yet confirmed. */
export class Sends {
  readonly #clock: WireClock;
  readonly #waitMs: number;
  readonly #pending = new Map<string, Pending>();
  /** Labels of answers of several lines, by the name of their batch. */
  readonly #batches = new Map<string, string>();

  constructor(clock: WireClock, waitMs: number) {
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /** Expects an answer to what is written after this call; resolves also when none comes in time, or `signal` aborts. */
  expect(label: string, target: string, isLabelled: boolean, signal: AbortSignal): Promise<SendResult> {
    const { promise, resolve } = Promise.withResolvers<SendResult>();
    const stopped = () => settle({ is: 'ambiguous', text: 'The server had not confirmed it when the channel stopped' });
    const cancel = this.#clock.after(this.#waitMs, () => settle({ is: 'ambiguous', text: 'The server did not confirm it in time' }));
    const settle = (result: SendResult) => {
      cancel();
      this.#pending.delete(label);
      signal.removeEventListener('abort', stopped);
      resolve(result);
    };
    this.#pending.set(label, { target, isLabelled, settle });
    signal.addEventListener('abort', stopped, { once: true });
    return promise;
  }

  /** Whether a refusal that names the target may be that of a message. */
  isSending(target: string): boolean {
    return this.#pending.values().some((one) => !one.isLabelled && one.target === target);
  }

  /** The answer to the ping behind a message: whatever refuses the message would have come before it. */
  ponged(token: string): void {
    const pending = this.#pending.get(token);
    if (pending?.isLabelled === false) pending.settle({ is: 'sent' });
  }

  /** Returns whether the line answers a message; `isEcho`: it is one of ours. */
  takes(line: Line, isEcho: boolean, fold: (name: string) => string): boolean {
    const { command, params, tags } = line;
    const own = tags.get('label');
    const label = own ?? this.#labelOf(line);
    if (label !== undefined) {
      const isBegin = command === 'BATCH' && params[0]?.startsWith('+') === true;
      if (isBegin && own !== undefined) this.#batches.set(params[0]?.slice(1) ?? '', own);
      this.#answered(label, line, isEcho, own === undefined ? command === 'BATCH' && !isBegin : !isBegin);
      return true;
    }
    if (!isRefusal(command) || ofJoins.has(command)) return false;
    const target = fold(params[1] ?? '');
    for (const pending of this.#pending.values())
      if (!pending.isLabelled && (withoutTarget.has(command) || pending.target === target)) {
        pending.settle(refusal(line));
        return true;
      }
    return false;
  }

  /** The connection has ended. */
  end(): void {
    for (const { settle } of this.#pending.values()) settle({ is: 'ambiguous', text: 'The connection ended before the server confirmed it' });
  }

  #labelOf({ command, params, tags }: Line): string | undefined {
    if (command !== 'BATCH' || params[0]?.startsWith('-') !== true) return this.#batches.get(tags.get('batch') ?? '');
    const name = params[0].slice(1);
    const label = this.#batches.get(name);
    this.#batches.delete(name);
    return label;
  }

  #answered(label: string, line: Line, isEcho: boolean, isLast: boolean): void {
    const pending = this.#pending.get(label);
    if (pending === undefined) return;
    const id = line.tags.get('msgid');
    if (isEcho) pending.settle({ is: 'sent', ...(id !== undefined && { platformId: id }) });
    else if (isRefusal(line.command) || line.command === 'FAIL') pending.settle(refusal(line));
    else if (isLast) pending.settle({ is: 'ambiguous', text: 'The server answered, but did not say that it took the message' });
  }
}

const refusal = ({ command, params }: Line): SendResult => ({ is: 'rejected', kind: kinds[command] ?? 'refused', text: params.at(-1) ?? command });
