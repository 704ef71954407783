import * as z from 'zod';
import { type Daemon, pause } from './daemon.ts';
import { rpcCall } from './rpc.ts';

const Health = z.object({ channels: z.array(z.object({ channelInstanceId: z.string(), state: z.string() })) });

/** Generous: the machine may do other work too. */
export const withinMs = 60_000;

/** Waits until channels are connected. */
export async function connected({ port, token }: Daemon, names: readonly string[] = ['chat']): Promise<void> {
  await until(async () => {
    const { channels } = Health.parse(await rpcCall({ port, token }, 'channels.health', {}));
    const healthy = channels.filter(({ state }) => state === 'healthy').map(({ channelInstanceId }) => channelInstanceId);
    return names.every((name) => healthy.includes(name));
  }, 'a channel did not connect');
}

/** Waits for a condition; fails when it does not come. */
export async function until(holds: () => Promise<boolean>, what: string, forMs = withinMs): Promise<void> {
  for (const deadline = performance.now() + forMs; !(await holds()); await pause(25)) if (performance.now() > deadline) throw new Error(what);
}
