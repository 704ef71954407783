import { buildIn } from './patch.ts';

/**
 * Not a fault in the program: kills the daemon once KILL_COUNT messages of channels have come to the point that KILL_AT names, while the file
 * KILL_ARMED exists. Those that come there earlier stay there.
 */
interface Location {
  readonly module: string;
  /** Is in an asynchronous function. */
  readonly text: string;
  /** The kill comes before the text otherwise. */
  readonly isAfter?: true;
  /** Condition in the module for a message to be at the point. */
  readonly only?: string;
  /** Milliseconds between the point and the kill; the message continues meanwhile. */
  readonly delayMs?: number;
}

const sender = 'features/channels/delivery/sender.ts';
const intake = 'features/channels/messages/messages.ts';
// A commit of the cursor alone is none of a message.
const hasMessages = 'messages.length > 0';
const points: Readonly<Record<string, Location>> = {
  received: {
    module: intake,
    text: 'const { added, full } = await db.write(deps.accept, { messages, changes, cursor: reached });',
    only: hasMessages,
  },
  committed: { module: intake, text: 'const [isNew, isFull] = [new Set(added), new Set(full)];', only: hasMessages },
  acknowledged: {
    module: 'features/channels/instances/instance.ts',
    text: 'if (received.length > 0) this.lastMessageAtMs = clock.now();',
    isAfter: true,
    delayMs: 100,
  },
  'turn running': { module: 'runtime/model-calls.ts', text: 'const { result, model } = await this.#stop.bounded' },
  'turn ended': { module: 'features/conversations/turns/durable/durable.ts', text: 'this.#end = { ...end, state: settlement.state };' },
  'sending committed': { module: sender, text: 'const [startedAtMs, startedAt] = [clock.now(), clock.monotonic()];' },
  'answer read': {
    module: sender,
    text: 'const state = await this.#finish({ id: part.id, bootId, ...end, repeatUnknown, atMs: clock.now() }, signal);',
  },
  'receipt committed': { module: sender, text: 'announceDelivery(this.#deps, { ...part, state });' },
};

const isArmed = "process.getBuiltinModule('node:fs').existsSync(process.env['KILL_ARMED'] ?? '')";
const arrive =
  "if ((globalThis.killArrivals = (globalThis.killArrivals ?? 0) + 1) >= Number(process.env['KILL_COUNT'] ?? 1)) process.kill(process.pid, 'SIGKILL')";
for (const [module, located] of Map.groupBy(Object.entries(points), ([, location]) => location.module))
  buildIn({
    name: 'killed-in-channel',
    module,
    replace: located.map(([point, { text, isAfter, only = 'true', delayMs }]) => {
      const when = `process.env['KILL_AT'] === ${JSON.stringify(point)} && ${only} && ${isArmed}`;
      const then = delayMs === undefined ? `${arrive}; await new Promise(() => {});` : `setTimeout(() => { ${arrive}; }, ${delayMs});`;
      const killing = `if (${when}) { ${then} }`;
      return { from: text, to: isAfter ? `${text} ${killing}` : `${killing} ${text}` };
    }),
  });
