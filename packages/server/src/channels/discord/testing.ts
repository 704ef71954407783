import { createStepClock, type FakeDiscord, type FakeDiscordOptions, startFakeDiscord, type StepClock } from '@gatehouse/testkit';
import type { Adapter, Ended, ReceivedMessage } from '../port.ts';
import { type DiscordConfig, openDiscord } from './discord.ts';

/** A process with the wire: with what it received and stored. */
export interface Wire {
  readonly adapter: Adapter;
  readonly received: ReceivedMessage[];
  /** Cursors in the order of their commits. */
  readonly cursors: string[];
  readonly names: string[];
  readonly ended: () => Ended | undefined;
  proofs: number;
  /** Rejects the next commits while set. */
  refuses: boolean;
  /** Each commit waits for it, and fails when it does. */
  holds: Promise<void> | undefined;
  /** A commit is under way. */
  taking: boolean;
  run(): Promise<Ended>;
  stop(): Promise<Ended | undefined>;
}

export interface Rig extends AsyncDisposable {
  readonly fake: FakeDiscord;
  readonly clock: StepClock;
  /** Opens a wire with a stored cursor, without connecting. */
  open(cursor?: string, more?: Partial<DiscordConfig>): Wire;
}

/** Starts a fake Discord on a clock that tests step. */
export async function startRig(options: FakeDiscordOptions = {}): Promise<Rig> {
  const clock = createStepClock();
  const fake = await startFakeDiscord({ now: () => clock.now(), ...options });
  const wires: Wire[] = [];
  return {
    fake,
    clock,
    open(cursor, more = {}) {
      const wire = openWire(fake, clock, cursor, more);
      wires.push(wire);
      return wire;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(wires.map((wire) => wire.stop()));
      await fake[Symbol.asyncDispose]();
    },
  };
}

function openWire(fake: FakeDiscord, clock: StepClock, cursor: string | undefined, more: Partial<DiscordConfig>): Wire {
  const log = { debug() {}, warn() {} };
  const adapter = openDiscord({ config: { token: fake.token, apiUrl: fake.apiUrl, ...more }, clock, log });
  const stopping = new AbortController();
  let running: Promise<Ended> | undefined;
  let last: Ended | undefined;
  const wire: Wire = {
    adapter,
    received: [],
    cursors: cursor === undefined ? [] : [cursor],
    names: [],
    ended: () => last,
    proofs: 0,
    refuses: false,
    holds: undefined,
    taking: false,
    run() {
      last = undefined;
      running = adapter.run(stopping.signal, {
        cursor: wire.cursors.at(-1),
        async take(messages, next) {
          wire.taking = true;
          await wire.holds?.finally(() => (wire.taking = false));
          wire.taking = false;
          if (wire.refuses) throw new Error('the storage is full');
          wire.received.push(...messages);
          if (next !== undefined) wire.cursors.push(next);
        },
        alive: () => (wire.proofs += 1),
        connected: (name) => wire.names.push(name),
      });
      void running.then((ended) => (last = ended));
      return running;
    },
    async stop() {
      stopping.abort();
      return running;
    },
  };
  return wire;
}
