import { createHmac } from 'node:crypto';
import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig } from './lib/provider.ts';
import { percentile } from './lib/raw.ts';
import { rpcCall } from './lib/rpc.ts';

/** R29: a webhook is answered immediately, whatever the turns of others and its own do meanwhile. */
export interface R29Report {
  readonly hooks: number;
  /** Turns of others that ran when the last hook was answered. */
  readonly running: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers other than 200. */
  readonly refused: readonly number[];
}

export const ackWithinMs = 250;
const turns = 50;
const secret = 'secret-of-the-webhooks-of-the-proving-suite';

export async function proveHookLatency(options: {
  readonly hooks: number;
  readonly perSecond: number;
  /** Models answer the turns of the hooks only when all hooks have been answered. */
  readonly held?: boolean;
  readonly broken?: string;
}): Promise<R29Report> {
  // The turns of others stream for a long time, those of the hooks take as long as models do.
  const answered = Promise.withResolvers<void>();
  let begun = 0;
  const provider = await startFakeProvider({
    journal: 0,
    answer({ body }) {
      if (!JSON.stringify(body).includes('a long story'))
        return { text: 'noted', ...(options.held ? { after: answered.promise } : { delayMs: 1_000 }) };
      begun += 1;
      return { text: Array.from({ length: 4_000 }, (_, index) => `word ${index} `), paceMs: 20 };
    },
  });
  const home = await makeHome();
  const port = await freePort();
  const agents = { default: { model: 'local/test-model', maxConcurrentRuns: 64 }, hooks: { model: 'local/test-model', maxConcurrentRuns: 64 } };
  const mappings = [{ id: 'r29', agentId: 'hooks', sessionKey: '{{key}}', messageTemplate: '{{text}}' }];
  await writeConfig(home, { ...proofConfig(provider.url, { agents }), webhooks: { token: secret, mappings } });
  const agent = new Agent({ keepAlive: true });
  const stop = new AbortController();
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const { token } = daemon;
    let running = turns;
    const stories = Array.from({ length: turns }, () =>
      http({
        port,
        path: '/v1/chat/completions',
        headers: bearer(token),
        body: { model: 'default', messages: [{ role: 'user', content: 'a long story' }], stream: true },
        signal: stop.signal,
        timeoutMs: 120_000,
        onData: () => undefined,
      })
        .catch(() => undefined)
        .finally(() => (running -= 1)),
    );
    for (const until = performance.now() + 30_000; begun < turns && performance.now() < until;) await pause(20);
    const times: number[] = [];
    const refused: number[] = [];
    const one = async (index: number): Promise<void> => {
      const body = JSON.stringify({ text: `hook ${index}`, key: String(index % 40) });
      const headers = { 'x-webhook-signature': createHmac('sha256', secret).update(body).digest('hex') };
      const from = performance.now();
      const { status } = await http({ port, path: '/hooks/r29', headers, body, agent, timeoutMs: 60_000 });
      times.push(performance.now() - from);
      if (status !== 200) refused.push(status);
    };
    const sent: Promise<void>[] = [];
    for (let index = 0; index < options.hooks; index += 1) {
      sent.push(one(index));
      await pause(1_000 / options.perSecond);
    }
    await Promise.all(sent);
    answered.resolve();
    const still = running;
    await rpcCall({ port, token }, 'system.ping', {});
    stop.abort();
    await Promise.all(stories);
    const round = (ms: number) => Math.round(ms * 10) / 10;
    return {
      hooks: times.length,
      running: still,
      p50Ms: round(percentile(times, 0.5)),
      p99Ms: round(percentile(times, 0.99)),
      maxMs: round(Math.max(...times)),
      refused,
    };
  } finally {
    answered.resolve();
    stop.abort();
    agent.destroy();
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}
