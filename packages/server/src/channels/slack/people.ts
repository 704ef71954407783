import * as z from 'zod';
import { sleep } from '../../kernel/timers.ts';
import type { WireClock } from '../port.ts';
import type { SlackClient } from './client.ts';
import type { Names } from './text.ts';

const mostKept = 1_000;
const mostAtOnce = 8;
/** An envelope is acknowledged within three seconds, and storing it takes some of them. */
const waitMs = 1_500;
const longestName = 128;

const UserInfo = z.object({
  user: z.object({
    name: z.string().nullish(),
    real_name: z.string().nullish(),
    profile: z.object({ display_name: z.string().nullish(), real_name: z.string().nullish() }).nullish(),
  }),
});

/** Names of people by their ids. */
export class People implements Names {
  readonly #client: SlackClient;
  readonly #clock: WireClock;
  readonly #names = new Map<string, string>();
  readonly #asked = new Map<string, Promise<void>>();
  #isPermitted = true;

  constructor(client: SlackClient, clock: WireClock) {
    this.#client = client;
    this.#clock = clock;
  }

  userName(id: string): string | undefined {
    return this.#names.get(id);
  }

  setName(id: string, name: string): void {
    this.#names.set(id, name);
  }

  /** Resolves when the names of these people are known, or could not be found out in time. */
  async learn(ids: Iterable<string>, signal: AbortSignal): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => !this.#names.has(id)).slice(0, mostAtOnce);
    if (unknown.length === 0 || !this.#isPermitted) return;
    const waited = new AbortController();
    await Promise.race([
      Promise.all(unknown.map((id) => this.#ask(id, signal))),
      sleep(this.#clock, waitMs, AbortSignal.any([signal, waited.signal])),
    ]);
    waited.abort();
  }

  #ask(id: string, signal: AbortSignal): Promise<void> {
    const running = this.#asked.get(id);
    if (running !== undefined) return running;
    const asking = this.#find(id, signal).finally(() => this.#asked.delete(id));
    this.#asked.set(id, asking);
    return asking;
  }

  async #find(id: string, signal: AbortSignal): Promise<void> {
    const answer = await this.#client.call('users.info', { user: id }, signal);
    if (answer.is === 'refused' && answer.error === 'missing_scope') this.#isPermitted = false;
    const parsed = answer.is === 'ok' ? UserInfo.safeParse(answer.data) : undefined;
    if (parsed?.success !== true) return;
    const { name, real_name: realName, profile } = parsed.data.user;
    const shown = [profile?.display_name, profile?.real_name, realName, name].find((one) => one != null && one !== '') ?? id;
    this.#names.set(id, shown.slice(0, longestName));
    const [oldest] = this.#names.keys();
    if (this.#names.size > mostKept && oldest !== undefined) this.#names.delete(oldest);
  }
}
