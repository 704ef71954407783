import { buildIn } from './patch.ts';

/** Not a fault in the program: kills the daemon at the point of a durable turn that KILL_AT names. */
const die = `process.kill(process.pid, 'SIGKILL');`;

/** The code location of each point: a module, its text, and the text with the kill in it. */
const points: Readonly<Record<string, readonly [module: string, from: string, to: string]>> = {
  'after the acceptance': ['features/unattended/cron/occurrences/runner.ts', 'if (isStored) announceStart(', `${die} if (isStored) announceStart(`],
  'before the claim': [
    'features/unattended/durable/claim-due.ts',
    'const items = await db.write(claimWork',
    `${die} const items = await db.write(claimWork`,
  ],
  'after the claim': [
    'features/unattended/durable/claim-due.ts',
    'for (const item of items) begin(item);',
    `if (items.length > 0) ${die} for (const item of items) begin(item);`,
  ],
  'after the row of the turn': ['features/conversations/turns/durable/durable.ts', 'if (opened === undefined) throw lostClaim();', die],
  'before a call of the model': [
    'runtime/model-calls.ts',
    'const { result, model } = await this.#stop.bounded',
    `${die} const { result, model } = await this.#stop.bounded`,
  ],
  'after the answer of the model': ['runtime/model-calls.ts', 'progress.model = model;', `progress.model = model; ${die}`],
  'after a tool that may be repeated': [
    'runtime/tool-steps.ts',
    'const verdict = this.#loops.observe(',
    `${die} const verdict = this.#loops.observe(`,
  ],
  'after a finished step': ['runtime/tool-steps.ts', 'await ledger.finish(entry, stored);', `await ledger.finish(entry, stored); ${die}`],
  'before an intent': ['features/conversations/turns/durable/ledger.ts', 'this.#hasActed = true;', die],
  'after an intent': ['features/conversations/turns/durable/ledger.ts', 'this.#open.set(call.id, opKey);', die],
  'after a tool that runs once': ['features/conversations/turns/durable/ledger.ts', 'this.#open.delete(call.id);', die],
  'before the end is committed': [
    'features/conversations/turns/durable/durable.ts',
    'const { created, ...end } = await db.write',
    `${die} const { created, ...end } = await db.write`,
  ],
  'after the end is committed': ['features/conversations/turns/durable/durable.ts', 'this.#end = { ...end, state: settlement.state };', die],
};

const [module, from, to] = points[process.env['KILL_AT'] ?? ''] ?? [];
if (module === undefined || from === undefined || to === undefined) throw new Error(`there is no point ${process.env['KILL_AT']}`);
buildIn({ name: 'killed-in-turn', module, replace: [{ from, to }] });
// Work that starts with its acceptance is not claimed: it must find no free slot.
if (module === 'features/unattended/durable/claim-due.ts')
  buildIn({
    name: 'killed-in-turn',
    module: 'features/unattended/durable/durable.ts',
    replace: [{ from: 'if (!canBegin(kind, work))', to: 'if (work.agentId !== undefined)' }],
  });
