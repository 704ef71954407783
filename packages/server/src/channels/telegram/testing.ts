import { createStepClock, type FakeTelegram, startFakeTelegram, type StepClock, type TelegramPerson } from '@gatehouse/testkit';
import type { Adapter, Ended, OutgoingPart, ReceivedMessage, SendResult } from '../port.ts';
import { openTelegram } from './telegram.ts';

export const ada: TelegramPerson = { id: 1001, first_name: 'Ada', last_name: 'Lovelace', username: 'ada_l' };
export const eve: TelegramPerson = { id: 1002, first_name: 'Eve' };
export const group = -100_200_300_400;

const closing: (() => unknown)[] = [];

/** Stops what the functions below started; to be called after each test. */
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).toReversed()) await close();
}

export interface Fake {
  readonly clock: StepClock;
  readonly telegram: FakeTelegram;
}

/** Starts a fake with a step clock that both sides use. */
export async function startTelegram(options: { readonly seesAll?: boolean } = {}): Promise<Fake> {
  const clock = createStepClock();
  const telegram = await startFakeTelegram({ ...options, now: clock.now });
  closing.push(() => telegram[Symbol.asyncDispose]());
  return { clock, telegram };
}

export interface Watch {
  readonly cursor?: string;
  readonly take?: (messages: readonly ReceivedMessage[], cursor: string | undefined) => Promise<void>;
  readonly token?: string;
  readonly apiUrl?: string;
}

/** An adapter, and what it received, stored and warned of. */
export interface Wire {
  readonly adapter: Adapter;
  readonly received: readonly ReceivedMessage[];
  readonly cursors: readonly (string | undefined)[];
  readonly logged: readonly string[];
  proofs(): number;
  stop(): Promise<Ended | undefined>;
  /** Connects; resolves with the end of the connection. */
  run(): Promise<Ended>;
  readonly connected: Promise<string>;
  /** Sends to Ada, or to another chat. */
  send(part: Omit<OutgoingPart, 'conversationId'> & { readonly to?: number }, signal?: AbortSignal): Promise<SendResult>;
}

export function open({ telegram, clock }: Fake, { cursor, take = async () => {}, token, apiUrl }: Watch = {}): Wire {
  const logged: string[] = [];
  const note = (fields: object, text: string) => void logged.push(`${text} ${JSON.stringify(fields)}`);
  const config = { token: token ?? telegram.token, apiUrl: apiUrl ?? telegram.url };
  const adapter = openTelegram({ config, clock, log: { debug: note, warn: note } });
  const stopping = new AbortController();
  const received: ReceivedMessage[] = [];
  const cursors: (string | undefined)[] = [];
  const connected = Promise.withResolvers<string>();
  let proofs = 0;
  const run = (): Promise<Ended> =>
    adapter.run(stopping.signal, {
      cursor: cursors.at(-1) ?? cursor,
      async take(messages, next) {
        await take(messages, next);
        received.push(...messages);
        cursors.push(next);
      },
      alive: () => (proofs += 1),
      connected: connected.resolve,
    });
  let ended: Promise<Ended> | undefined;
  const stop = async () => {
    stopping.abort();
    return ended;
  };
  closing.push(stop);
  let sends = 0;
  return {
    adapter,
    received,
    cursors,
    logged,
    proofs: () => proofs,
    stop,
    run: () => (ended = run()),
    connected: connected.promise,
    send: (part, signal = never) => {
      const { to = ada.id, ...rest } = part;
      return adapter.send({ conversationId: String(to), ...rest }, { key: `key ${(sends += 1)}`, signal });
    },
  };
}

export const never: AbortSignal = new AbortController().signal;

/** Starts a fake, and an adapter that is connected to it. */
export async function connect(watch: Watch & { readonly seesAll?: boolean } = {}): Promise<Fake & Wire> {
  const fake = await startTelegram(watch);
  const wire = open(fake, watch);
  void wire.run();
  await wire.connected;
  return { ...fake, ...wire };
}

/** A group with both people; Ada owns it. */
export function addGroup(telegram: FakeTelegram, more: { readonly isForum?: boolean; readonly bot?: 'member' | 'administrator' } = {}): void {
  telegram.chats.addGroup({ id: group, title: 'Lab', members: [ada, eve], ...more });
}
