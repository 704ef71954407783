// What keeping traces costs: processor time of a daemon per turn with and without them, in alternating blocks on one daemon. The daemon is a
// child process; provider and client are in this one, which is not measured.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { createClient } from '@gatehouse/client';
import { startFakeProvider, startTestServer } from '@gatehouse/testkit';
import { cpuUs } from '../lib/proc.ts';
import { median } from '../lib/stats.ts';

interface Started {
  readonly url: string;
  readonly token: string;
}

/** Turns of a block, and how many run at the same time. */
const concurrency = 4;

async function serve(providerUrl: string): Promise<void> {
  const models = [{ id: 'fast', cost: { input: 1, output: 2 } }];
  const { url, token } = await startTestServer({
    config: {
      providers: { far: { type: 'openai-compatible', baseUrl: providerUrl, apiKey: 'k', models } },
      agents: { default: { model: 'far/fast', maxConcurrentRuns: 64 } },
    },
  });
  process.send?.({ url, token } satisfies Started);
}

export async function measureTraces(rounds: number, turns: number): Promise<readonly { readonly on: number; readonly off: number }[]> {
  const provider = await startFakeProvider();
  const child = fork(import.meta.filename, ['--serve', provider.url]);
  try {
    const [{ url, token }] = (await once(child, 'message')) as [Started];
    const client = createClient({ url, token });
    const block = async (enabled: boolean): Promise<number> => {
      await client.call('config.patch', { path: 'observability.persistence.enabled', value: enabled, confirm: true });
      const before = cpuUs(child.pid ?? 0);
      const ask = async (lane: number) => {
        for (let turn = lane; turn < turns; turn += concurrency) {
          const sessionKey = `bench:${lane}:${turn}`;
          await client.call('agent.execute', { message: 'Which tea shall I buy?', sessionKey });
        }
      };
      await Promise.all(Array.from({ length: concurrency }, (_, lane) => ask(lane)));
      // What is written behind the turns belongs to them.
      await new Promise((resolve) => setTimeout(resolve, 700));
      return (cpuUs(child.pid ?? 0) - before) / turns;
    };
    const results: { on: number; off: number }[] = [];
    for (let round = -1; round < rounds; round += 1) {
      const isOnFirst = round % 2 === 0;
      const first = await block(isOnFirst);
      const second = await block(!isOnFirst);
      if (round >= 0) results.push(isOnFirst ? { on: first, off: second } : { on: second, off: first });
    }
    return results;
  } finally {
    child.kill();
    await provider.close();
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { serve: { type: 'string' }, rounds: { type: 'string', default: '9' }, turns: { type: 'string', default: '400' } },
  });
  if (values.serve !== undefined) await serve(values.serve);
  else {
    const rounds = await measureTraces(Number(values.rounds), Number(values.turns));
    console.log(`CPU µs per turn: off ${median(rounds.map(({ off }) => off)).toFixed(0)}, on ${median(rounds.map(({ on }) => on)).toFixed(0)}`);
    console.log(`CPU ratio: ${median(rounds.map(({ on, off }) => on / off)).toFixed(3)}`);
    console.log(JSON.stringify(rounds.map(({ on, off }) => Number((on / off).toFixed(3)))));
  }
}
