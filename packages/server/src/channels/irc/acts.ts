import type { Act, WireClock } from '../port.ts';
import type { Line } from './line.ts';
import { isRefusal } from './sends.ts';

export type ActName = 'join' | 'part' | 'topic' | 'names';
export type ActResult = Act<Readonly<Record<string, unknown>>>;
type Failed = Extract<ActResult, { readonly is: 'failed' }>;

const commands: Readonly<Record<ActName, string>> = { join: 'JOIN', part: 'PART', topic: 'TOPIC', names: 'NAMES' };
const flags: Readonly<Record<Exclude<ActName, 'names'>, string>> = { join: 'joined', part: 'parted', topic: 'topicSet' };
/** Names that are listed. */
const maxNames = 500;

const kinds: Readonly<Record<string, Failed['kind']>> = {
  '403': 'not_found',
  '437': 'unavailable',
  '461': 'invalid',
  '476': 'invalid',
  '479': 'invalid',
};

interface Pending {
  readonly name: ActName;
  /** The name as the caller wrote it, and as the network compares it. */
  readonly channel: string;
  readonly folded: string;
  readonly names: string[];
  total: number;
  readonly settle: (result: ActResult) => void;
}

/** Actions whose command is written and not yet answered. */
export class Acts {
  readonly #clock: WireClock;
  readonly #waitMs: number;
  readonly #pending = new Map<string, Pending>();

  constructor(clock: WireClock, waitMs: number) {
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /** Expects an answer to what is written after this call, with a ping with this token behind it. */
  expect(token: string, act: Pick<Pending, 'name' | 'channel' | 'folded'>, signal: AbortSignal): Promise<ActResult> {
    const { promise, resolve } = Promise.withResolvers<ActResult>();
    const unclear = (text: string) => () => settle({ is: 'failed', kind: 'ambiguous', text });
    const stopped = unclear('The server had not answered when the channel stopped');
    const cancel = this.#clock.after(this.#waitMs, unclear('The server did not answer in time'));
    const settle = (result: ActResult) => {
      cancel();
      this.#pending.delete(token);
      signal.removeEventListener('abort', stopped);
      resolve(result);
    };
    this.#pending.set(token, { ...act, names: [], total: 0, settle });
    signal.addEventListener('abort', stopped, { once: true });
    return promise;
  }

  /** Returns whether the line answers an action; `isOwn`: it says what we did. `isSending`: it may as well refuse a message to the channel. */
  takes({ command, params }: Line, isOwn: boolean, fold: (name: string) => string, isSending: (folded: string) => boolean): boolean {
    if (this.#pending.size === 0) return false;
    if (command === 'PONG') return this.#ponged(params.at(-1) ?? '');
    if (command === '353') return this.#listed(fold(params[2] ?? ''), params.at(-1) ?? '');
    if (command === '366') return this.#settle('names', fold(params[1] ?? ''));
    if (isOwn && (command === 'JOIN' || command === 'PART' || command === 'TOPIC'))
      return this.#settle(command === 'JOIN' ? 'join' : command === 'PART' ? 'part' : 'topic', fold(params[0] ?? ''));
    const channel = fold(params[1] ?? '');
    if (!isRefusal(command) || isSending(channel)) return false;
    const pending = this.#find(channel);
    pending?.settle({ is: 'failed', kind: kinds[command] ?? 'denied', text: params.at(-1) ?? command });
    return pending !== undefined;
  }

  /** The connection has ended. */
  end(): void {
    for (const { settle } of this.#pending.values())
      settle({ is: 'failed', kind: 'ambiguous', text: 'The connection ended before the server answered' });
  }

  /** The server answers in order: without a refusal it did it, or there was nothing to do. */
  #ponged(token: string): boolean {
    const pending = this.#pending.get(token);
    pending?.settle(resultOf(pending));
    return pending !== undefined;
  }

  #listed(folded: string, names: string): boolean {
    const pending = this.#find(folded, 'names');
    if (pending === undefined) return false;
    const listed = names.split(' ').filter((name) => name !== '');
    pending.total += listed.length;
    pending.names.push(...listed.slice(0, maxNames - pending.names.length));
    return true;
  }

  #settle(name: ActName, folded: string): boolean {
    const pending = this.#find(folded, name);
    pending?.settle(resultOf(pending));
    return pending !== undefined;
  }

  #find(folded: string, name?: ActName): Pending | undefined {
    return this.#pending.values().find((one) => one.folded === folded && (name === undefined || one.name === name));
  }
}

/** Returns the command of an action and its parameters. */
export function commandOf(name: ActName, channel: string, params: Readonly<Record<string, unknown>>): readonly [string, readonly string[]] {
  const more = name === 'join' ? params['key'] : name === 'part' ? params['reason'] : name === 'topic' ? params['topic'] : undefined;
  return [commands[name], typeof more === 'string' && (more !== '' || name === 'topic') ? [channel, more] : [channel]];
}

function resultOf({ name, channel, names, total }: Pending): ActResult {
  return { is: 'done', value: name === 'names' ? { channel, names, total } : { [flags[name]]: true, channel } };
}
