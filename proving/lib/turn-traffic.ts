import { Agent } from 'node:http';
import type { Daemon } from './daemon.ts';
import { rpcCall } from './rpc.ts';

/** Events of the first turn of a conversation: message received, conversation created, tokens used, answer sent. */
export const eventsPerTurn = 4;

export interface Traffic {
  readonly turns: number;
  readonly failed: readonly string[];
  /** Latencies of the answers since the last `take`. */
  takeLatencies(): number[];
  /** Stops the traffic; resolves when nothing is in flight. */
  stop(): Promise<void>;
}

/** Starts turns at a fixed rate, whether they are answered or not, each in a new conversation. */
export function startTraffic(daemon: Pick<Daemon, 'port' | 'token'>, options: { readonly perSecond: number; readonly textBytes: number }): Traffic {
  const agent = new Agent({ keepAlive: true });
  const text = 'x'.repeat(options.textBytes);
  const begun = performance.now();
  const failed: string[] = [];
  const running = new Set<Promise<void>>();
  let latencies: number[] = [];
  let turns = 0;
  let sent = 0;
  const turn = async (n: number): Promise<void> => {
    const from = performance.now();
    try {
      await rpcCall({ port: daemon.port, token: daemon.token, agent }, 'agent.execute', { message: text, sessionKey: `user-${n}:traffic` });
      latencies.push(performance.now() - from);
      turns += 1;
    } catch (error) {
      failed.push(String(error));
    }
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - begun) / 1000) * options.perSecond;
    for (; sent < due; sent += 1) {
      const one = turn(sent).finally(() => running.delete(one));
      running.add(one);
    }
  }, 10);
  return {
    get turns() {
      return turns;
    },
    failed,
    takeLatencies() {
      const taken = latencies;
      latencies = [];
      return taken;
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(running);
      agent.destroy();
    },
  };
}
