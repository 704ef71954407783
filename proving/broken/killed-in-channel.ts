import { buildIn } from './patch.ts';

/** Not a fault in the program: kills the daemon at the point of a message of a channel that KILL_AT names, once the file KILL_ARMED exists. */
interface Location {
  readonly module: string;
  readonly text: string;
  /** The kill comes before the text otherwise. */
  readonly isAfter?: true;
  /** Milliseconds between the point and the kill. */
  readonly delayMs?: number;
}

const sender = 'features/channels/delivery/sender.ts';
const intake = 'features/channels/messages/messages.ts';
const points: Readonly<Record<string, Location>> = {
  received: { module: intake, text: 'const { added, full } = await db.write(deps.accept, { messages, changes, cursor: reached });' },
  committed: { module: intake, text: 'const [isNew, isFull] = [new Set(added), new Set(full)];' },
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
for (const [module, located] of Map.groupBy(Object.entries(points), ([, location]) => location.module))
  buildIn({
    name: 'killed-in-channel',
    module,
    replace: located.map(([point, { text, isAfter, delayMs }]) => {
      const kill = "process.kill(process.pid, 'SIGKILL')";
      const when = `process.env['KILL_AT'] === ${JSON.stringify(point)} && ${isArmed}`;
      const killing = `if (${when}) ${delayMs === undefined ? kill : `setTimeout(() => ${kill}, ${delayMs})`};`;
      return { from: text, to: isAfter ? `${text} ${killing}` : `${killing} ${text}` };
    }),
  });
