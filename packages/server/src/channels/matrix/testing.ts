import { createStepClock, type FakeMatrix, type FakeMatrixOptions, startFakeMatrix, type StepClock } from '@gatehouse/testkit';
import { expect } from 'vitest';
import type { Adapter, Ended, OutgoingPart, ReceivedMessage, SendResult } from '../port.ts';
import type { MatrixConfig } from './matrix.ts';
import { openMatrix } from './matrix.ts';

const closing: (() => unknown)[] = [];

/** Ends what a test has started. */
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).toReversed()) await close();
}

export interface ConnectOptions extends Partial<MatrixConfig> {
  readonly cursor?: string | undefined;
  readonly take?: (messages: readonly ReceivedMessage[], cursor: string | undefined) => Promise<void>;
}

/** A homeserver with an account for us, `gate`, and two people. */
export async function startWorld(options: FakeMatrixOptions = {}) {
  const hs = await startFakeMatrix(options);
  closing.push(() => hs[Symbol.asyncDispose]());
  return { hs, gate: hs.account('gate', 'Gate'), ada: hs.account('ada', 'Ada'), eve: hs.account('eve', 'Eve') };
}

export interface Wire {
  readonly adapter: Adapter;
  readonly clock: StepClock;
  readonly warned: readonly { readonly fields: object; readonly text: string }[];
  readonly received: readonly ReceivedMessage[];
  readonly cursors: readonly string[];
  readonly connected: readonly string[];
  /** A signal that never aborts. */
  readonly signal: AbortSignal;
  proofs(): number;
  run(signal: AbortSignal): Promise<Ended>;
  send(part: Partial<OutgoingPart> & { readonly conversationId: string }, key?: string, signal?: AbortSignal): Promise<SendResult>;
}

/** An adapter and what it receives, not connected. */
export function open(hs: FakeMatrix, accessToken: string, { cursor, take = async () => {}, ...more }: ConnectOptions = {}): Wire {
  const clock = createStepClock();
  const warned: { readonly fields: object; readonly text: string }[] = [];
  const log = { debug() {}, warn: (fields: object, text: string) => void warned.push({ fields, text }) };
  const config = { homeserver: hs.url, accessToken, joinInvitesFrom: { direct: ['*'], groups: [] }, ...more };
  const adapter = openMatrix({ config, clock, log });
  const received: ReceivedMessage[] = [];
  const cursors: string[] = cursor === undefined ? [] : [cursor];
  const connected: string[] = [];
  let proofs = 0;
  const run = (signal: AbortSignal): Promise<Ended> =>
    adapter.run(signal, {
      cursor: cursors.at(-1),
      take: async (messages, next) => {
        await take(messages, next);
        received.push(...messages);
        if (next !== undefined) cursors.push(next);
      },
      alive: () => (proofs += 1),
      connected: (name) => void connected.push(name),
    });
  let sends = 0;
  const send: Wire['send'] = (part, key = `key ${(sends += 1)}`, signal = new AbortController().signal) =>
    adapter.send({ text: 'hi', ...part }, { key, signal });
  return { adapter, clock, warned, received, cursors, connected, proofs: () => proofs, run, send, signal: new AbortController().signal };
}

/** Connects; resolves when it polls for what comes next, or when the connection ended. */
export async function connect(hs: FakeMatrix, accessToken: string, options: ConnectOptions = {}) {
  const wire = open(hs, accessToken, options);
  return { ...wire, ...(await start(hs, wire)) };
}

export async function start(hs: FakeMatrix, wire: Wire) {
  const stopping = new AbortController();
  const before = wire.connected.length;
  let end: Ended | undefined;
  const ended = wire.run(stopping.signal).then((one) => (end = one));
  const stop = () => {
    stopping.abort();
    return ended;
  };
  closing.push(stop);
  await expect.poll(() => end !== undefined || (wire.connected.length > before && hs.polls > 0)).toBe(true);
  return { ended, stop };
}
