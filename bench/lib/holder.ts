import { once } from 'node:events';
import { join } from 'node:path';
import { clientCpu, spawnPinned } from './proc.ts';

/** Connections that are opened and then only listened to. */
export interface Held {
  readonly url: string;
  /** The request as it goes over the wire. */
  readonly request: string;
  readonly count: number;
  /** What is counted in that which arrives. */
  readonly mark: string;
}

export interface HeldState {
  /** Answered with 200 or 101 and still open. */
  readonly open: number;
  readonly marks: number;
  readonly bytes: number;
}

export interface Holder {
  /** Resolves when all of them are answered or closed. */
  hold(held: Held): Promise<HeldState>;
  state(): Promise<HeldState>;
  /** Resolves with all connections closed. */
  stop(): Promise<void>;
}

/** A process that holds connections, on the CPU of the clients. */
export function startHolder(): Holder {
  const child = spawnPinned([join(import.meta.dirname, 'holder-process.ts')], clientCpu, {
    env: process.env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const gone = once(child, 'exit');
  async function ask(question: Held | 'state'): Promise<HeldState> {
    const answer = once(child, 'message');
    child.send(question);
    const [state] = await Promise.race([answer, gone.then(() => Promise.reject(new Error('the process that holds connections ended')))]);
    return state;
  }
  return {
    hold: ask,
    state: () => ask('state'),
    async stop() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}
