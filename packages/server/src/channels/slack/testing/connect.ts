import { createStepClock, type FakeSlack, startFakeSlack, type StepClock } from '@gatehouse/testkit';
import { expect, onTestFinished } from 'vitest';
import type { Adapter, Ended, OutgoingPart, ReceivedMessage, SendResult } from '../../port.ts';
import type { SlackKeys } from '../config.ts';
import { openSlack } from '../slack.ts';

export const never: AbortSignal = new AbortController().signal;

export interface World {
  readonly slack: FakeSlack;
  readonly clock: StepClock;
}

/** A fake Slack with a stepped clock, which is stopped with the test. */
export async function startWorld(): Promise<World> {
  const clock = createStepClock();
  const slack = await startFakeSlack({ now: () => clock.now() });
  onTestFinished(() => slack[Symbol.asyncDispose]());
  return { slack, clock };
}

export interface Opened {
  readonly adapter: Adapter;
  readonly warned: string[];
  send(part: Partial<OutgoingPart> & { readonly conversationId: string }, key?: string): Promise<SendResult>;
  lookUp(
    part: Partial<OutgoingPart> & { readonly conversationId: string },
    key: string,
    sinceMs?: number,
  ): ReturnType<NonNullable<Adapter['lookUp']>>;
}

/** An adapter that is not connected. */
export function open({ slack, clock }: World, more: Partial<SlackKeys> = {}): Opened {
  const warned: string[] = [];
  const log = { debug() {}, warn: (fields: object, text: string) => void warned.push(`${text} ${JSON.stringify(fields)}`) };
  const { botToken, appToken, apiUrl } = slack;
  const adapter = openSlack({ config: { botToken, appToken, apiUrl, ...more }, clock, log });
  let sends = 0;
  return {
    adapter,
    warned,
    send: (part, key = `key ${(sends += 1)}`) => adapter.send({ text: '', ...part }, { key, signal: never }),
    lookUp: (part, key, sinceMs = clock.now()) => adapter.lookUp!({ text: '', ...part }, { key, sinceMs, signal: never }),
  };
}

export interface Connected extends Opened {
  readonly name: string;
  readonly received: ReceivedMessage[];
  readonly ended: Promise<Ended>;
  readonly cursors: string[];
  proofs(): number;
  stop(): Promise<Ended>;
}

export interface Watch {
  readonly take?: (messages: readonly ReceivedMessage[]) => Promise<void>;
  readonly cursor?: string | undefined;
  readonly config?: Partial<SlackKeys>;
  readonly opened?: Opened;
}

/** Runs an adapter until it is connected or its connection ended; it is stopped with the test. */
export async function connect(
  world: World,
  { take = async () => {}, cursor, config = {}, opened = open(world, config) }: Watch = {},
): Promise<Connected> {
  const stopping = new AbortController();
  const received: ReceivedMessage[] = [];
  const cursors: string[] = [];
  const greeted = Promise.withResolvers<string>();
  let proofs = 0;
  const ended = opened.adapter.run(stopping.signal, {
    cursor,
    take: async (messages, next) => {
      await take(messages);
      received.push(...messages);
      if (next !== undefined) cursors.push(next);
    },
    alive: () => (proofs += 1),
    connected: greeted.resolve,
  });
  const stop = () => {
    stopping.abort();
    return ended;
  };
  onTestFinished(() => void stop());
  const name = await Promise.race([greeted.promise, ended.then(() => '')]);
  return { ...opened, name, received, ended, cursors, proofs: () => proofs, stop };
}

/** Time passes on a connection that is alive: Slack pings, and gets answers. */
export async function passTime({ slack, clock }: World, ms: number): Promise<void> {
  const stepMs = 20_000;
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    const { pongs } = slack;
    slack.ping();
    await expect.poll(() => slack.open === 0 || slack.pongs > pongs, { interval: 2 }).toBe(true);
    clock.advance(stepMs);
  }
}
