import { createHmac } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createStepClock, type FakeAnswer, startTestServer } from '@gatehouse/testkit';
import { makeHome, removeHome } from './home.ts';
import { nonceOf, noncesIn } from './provider.ts';

export interface WrongClockLoad {
  /** Requests with a key, webhooks and files of each home. */
  readonly each: number;
  /** How far the clock of the second of three starts is off, in days, for each home. */
  readonly offDays: readonly number[];
  /** How long the later starts run before anything is repeated. */
  readonly minutes: number;
}

export interface WrongClockReport {
  /** Requests and deliveries that were repeated. */
  readonly repeats: number;
  readonly wrong: readonly string[];
}

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 8, 21, 12);
const secret = 'a-shared-secret-of-more-than-32-characters';

/** Starts one home three times, the second time with a clock that is days or years off, and repeats everything from before. */
export async function liveThroughWrongClock({ each, offDays, minutes }: WrongClockLoad): Promise<WrongClockReport> {
  const wrong: string[] = [];
  let repeats = 0;
  for (const days of offDays) {
    const home = await makeHome();
    try {
      const life = new Life(home, each, minutes);
      await life.live(days);
      repeats += life.repeats;
      wrong.push(...life.wrong.map((line) => `${days} days off: ${line}`));
    } finally {
      await removeHome(home);
    }
  }
  return { repeats, wrong };
}

class Life {
  readonly wrong: string[] = [];
  repeats = 0;
  readonly #home: string;
  readonly #minutes: number;
  readonly #numbers: readonly number[];
  readonly #asked = new Map<string, number>();
  readonly #media: string[] = [];

  constructor(home: string, each: number, minutes: number) {
    this.#minutes = minutes;
    this.#home = home;
    this.#numbers = Array.from({ length: each }, (_, index) => index);
  }

  async live(offDays: number): Promise<void> {
    {
      await using server = await this.#start(0);
      const schedule = { kind: 'in', seconds: 1 } as const;
      await server.client.call('cron.add', { name: 'job', schedule, payload: { kind: 'agent_turn', message: `Write ${nonceOf(['job'])}` } });
      await this.#sendAll(server);
      // One by one: only so many uploads of a caller are accepted at once.
      for (const n of this.#numbers) this.#media.push(await server.upload(`file ${n}`));
      server.bus.emit('system:error', { source: 'proof', message: 'remembered', timestamp: startMs });
      for (let tries = 0; tries < 500 && (await server.pending()) === 0; tries += 1) await server.pass(1_000);
    }
    for (const [atMs, isWrong] of [
      [offDays * 24 * 60 * minuteMs, true],
      [60 * minuteMs, false],
    ] as const) {
      await using server = await this.#start(atMs);
      for (let minute = 0; minute < this.#minutes; minute += 1) await server.pass(minuteMs);
      if ((await server.health()).includes('"clock"') !== isWrong) this.#note(`/health ${isWrong ? 'does not name' : 'names'} the clock`);
      this.repeats += 2 * this.#numbers.length;
      await this.#sendAll(server);
      await this.#look(server, isWrong ? 'under the wrong clock' : 'afterwards');
      if (!isWrong) await this.#approve(server);
    }
  }

  async #look(server: Server, when: string): Promise<void> {
    for (const [nonce, times] of this.#asked) if (times !== 1) this.#note(`${nonce} ran ${times} times, ${when}`);
    for (const id of this.#media) if (!(await server.hasMedia(id))) this.#note(`a file is gone ${when}`);
    if (!(await server.activity()).includes('remembered')) this.#note(`an event is gone ${when}`);
    if ((await server.pending()) !== 1) this.#note(`a call does not wait for its approval ${when}`);
  }

  async #approve(server: Server): Promise<void> {
    if ((await server.pending()) === 0) return;
    await server.client.call('admin.approval.resolveAll', { approved: true });
    const file = join(this.#home, 'workspaces/default/ask/job.txt');
    for (let tries = 0; tries < 500 && !existsSync(file); tries += 1) await server.pass(1_000);
    if (!existsSync(file)) this.#note('the call that was approved was not made');
  }

  async #sendAll(server: Server): Promise<void> {
    for (const n of this.#numbers) {
      await server.chat(n);
      await server.hook(n);
    }
    // Webhooks run after their answer.
    for (let tries = 0; tries < 500 && this.#asked.size < 2 * this.#numbers.length; tries += 1) await server.pass(1_000);
    await server.pass(1_000);
  }

  #note(line: string): void {
    this.wrong.push(line);
  }

  readonly #answer = ({ body }: { readonly body: unknown }): FakeAnswer => {
    const text = JSON.stringify(body);
    if (text.includes(nonceOf(['job'])))
      return text.includes('"role":"tool"')
        ? { text: 'Done' }
        : { toolCalls: [{ id: 'call_1', name: 'write', arguments: JSON.stringify({ path: 'ask/job.txt', content: 'x' }) }] };
    for (const nonce of noncesIn(body).slice(-1)) this.#asked.set(nonce, (this.#asked.get(nonce) ?? 0) + 1);
    return { text: 'Done' };
  };

  #start = (offMs: number) => startServer(this.#home, startMs + offMs, this.#answer);
}

type Server = Awaited<ReturnType<typeof startServer>>;

async function startServer(homeDir: string, atMs: number, answer: (request: { readonly body: unknown }) => FakeAnswer) {
  const clock = createStepClock(atMs);
  const server = await startTestServer({
    clock,
    homeDir,
    provider: { answer },
    config: {
      media: { retentionDays: 30 },
      approvals: { rules: [{ tools: ['write'], match: { path: 'ask/*' }, action: 'ask' }] },
      agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: '{{text}}', match: { path: 'hook' } }], token: secret },
    },
  });
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${server.token}`, ...init.headers } });
  const post = (path: string, body: string, headers: Record<string, string>) =>
    ask(path, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
  return {
    client: server.client,
    bus: server.bus,
    async pass(ms: number) {
      clock.advance(ms);
      await pause(5);
    },
    chat: (n: number) =>
      post('/api/chat', JSON.stringify({ message: nonceOf(['chat', n]) }), { 'idempotency-key': `key-of-request-${n}` }).then((reply) =>
        reply.text(),
      ),
    hook(n: number) {
      const body = JSON.stringify({ text: nonceOf(['hook', n]) });
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      return post('/hooks/hook', body, { 'x-webhook-signature': signature, 'x-github-delivery': `delivery-${n}` }).then((reply) => reply.text());
    },
    upload: async (text: string) =>
      ((await (await ask('/media', { method: 'POST', body: text, headers: { 'content-type': 'text/plain' } })).json()) as { mediaId: string })
        .mediaId,
    hasMedia: async (id: string) => (await ask(`/media/${id}`)).status === 200,
    health: async () => (await ask('/health')).text(),
    activity: async () => (await ask('/api/activity?limit=500')).text(),
    pending: async () => (await server.client.call('admin.approval.pending', {})).requests.length,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
