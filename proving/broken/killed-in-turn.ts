import { buildIn } from './patch.ts';

/** Not a fault in the program: kills the daemon at the point of a durable turn that KILL_AT names. */
interface Location {
  readonly module: string;
  readonly text: string;
  /** The kill comes before the text otherwise. */
  readonly isAfter?: true;
  /** Kills only when this holds. */
  readonly when?: string;
}

const claiming = 'features/unattended/durable/claim-due.ts';
const points: Readonly<Record<string, Location>> = {
  'after the acceptance': { module: 'features/unattended/cron/occurrences/runner.ts', text: 'if (isStored) announceStart(' },
  'before the claim': { module: claiming, text: 'const items = await db.write(claimWork' },
  'after the claim': { module: claiming, text: 'for (const item of items) begin(item);', when: 'items.length > 0' },
  'after the row of the turn': {
    module: 'features/conversations/turns/durable/durable.ts',
    text: 'if (opened === undefined) throw lostClaim();',
  },
  'before a call of the model': { module: 'runtime/model-calls.ts', text: 'const { result, model } = await this.#stop.bounded' },
  'after the answer of the model': { module: 'runtime/model-calls.ts', text: 'progress.model = model;', isAfter: true },
  'after a tool that may be repeated': { module: 'runtime/tool-steps.ts', text: 'const verdict = this.#loops.observe(' },
  'after a finished step': { module: 'runtime/tool-steps.ts', text: 'await ledger.finish(entry, stored);', isAfter: true },
  'before an intent': { module: 'features/conversations/turns/durable/ledger.ts', text: 'this.#hasActed = true;' },
  'after an intent': { module: 'features/conversations/turns/durable/ledger.ts', text: 'this.#open.set(call.id, opKey);' },
  'after a tool that runs once': { module: 'features/conversations/turns/durable/ledger.ts', text: 'this.#open.delete(call.id);' },
  'before the end is committed': {
    module: 'features/conversations/turns/durable/durable.ts',
    text: 'const { created, ...end } = await db.write',
  },
  'after the end is committed': {
    module: 'features/conversations/turns/durable/durable.ts',
    text: 'this.#end = { ...end, state: settlement.state };',
  },
};

const isAt = (names: readonly string[]): string => `${JSON.stringify(names)}.includes(process.env['KILL_AT'])`;
for (const [module, located] of Map.groupBy(Object.entries(points), ([, location]) => location.module)) {
  const replace = located.map(([point, { text, isAfter, when = 'true' }]) => {
    const kill = `if (${isAt([point])} && ${when}) process.kill(process.pid, 'SIGKILL');`;
    return { from: text, to: isAfter ? `${text} ${kill}` : `${kill} ${text}` };
  });
  buildIn({ name: 'killed-in-turn', module, replace });
}
// Work that starts with its acceptance is not claimed: it must find no free slot.
const claims = Object.entries(points).flatMap(([point, { module }]) => (module === claiming ? [point] : []));
buildIn({
  name: 'killed-in-turn',
  module: 'features/unattended/durable/durable.ts',
  replace: [{ from: 'if (!canBegin(kind, work))', to: `if (${isAt(claims)} ? work.agentId !== undefined : !canBegin(kind, work))` }],
});
