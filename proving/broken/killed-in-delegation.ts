import { buildIn } from './patch.ts';

/** Not a fault in the program: kills the daemon at the point of delegated work that KILL_AT names. */
type Location = readonly [module: string, text: string];

/** The code location of each point: the kill comes before this text of the module. */
const points: Readonly<Record<string, Location>> = {
  'before a run is accepted': ['features/delegation/subagents/run/runner.ts', 'const accepted = await db.write(operations.accept,'],
  'after a run is accepted': ['features/delegation/subagents/requests/spawn/spawn.ts', "if ('refused' in accepted)"],
  'before a run begins': ['features/delegation/subagents/run/runner.ts', 'const steers = await db.write(operations.begin,'],
  'after a run has begun': ['features/delegation/subagents/run/runner.ts', 'events.started(begun, row.startedAtMs !== null);'],
  'before the turn of a run is opened': ['features/delegation/subagents/run/runner.ts', 'const outcome = await turns.runDurably('],
  'before the end of a run is committed': ['features/delegation/subagents/run/runner.ts', 'const runEnd = await conclude('],
  'after the end of a run is committed': ['features/delegation/subagents/run/runner.ts', 'if (endedRun !== undefined) this.ended([endedRun]);'],
  'before a failed run is announced': [
    'features/delegation/subagents/completion/announce.ts',
    'const isDelivered = await db.write(deps.operations.deliverAnnouncement,',
  ],
  'after a failed run is announced': ['features/delegation/subagents/completion/announce.ts', 'if (!isDelivered) return;'],
  'before an announcement is claimed': [
    'features/delegation/subagents/completion/announce.ts',
    'found = await db.write(deps.operations.takeAnnouncement,',
  ],
  'after an announcement is claimed': [
    'features/delegation/subagents/completion/announce.ts',
    'if (!found.exists || found.rows.length === 0) return undefined;',
  ],
  'after an announcement is delivered': [
    'features/delegation/subagents/completion/announce.ts',
    "if (outcome.settled && outcome.state !== 'accepted')",
  ],
  'before a graph is accepted': ['features/delegation/graph/run/start/start.ts', 'const accepted = await db.write(deps.operations.accept, intake'],
  'after a graph is accepted': ['features/delegation/graph/run/start/start.ts', "if (accepted === 'full')"],
  'after a node has begun a run': ['features/delegation/graph/nodes/run-node.ts', 'node.runId = runId;'],
  'after the run of a node has ended': ['features/delegation/graph/nodes/run-node.ts', 'node.tokens += end.telemetry'],
  'between two attempts of a node': ['features/delegation/graph/nodes/run-node.ts', 'await pause(host,'],
  'before a step of a debate is stored': ['features/delegation/graph/nodes/run-node.ts', 'if (isTyped(work)) await host.save([node]);'],
  'after the end of a node is stored': ['features/delegation/graph/nodes/run-node.ts', 'host.phase(node, phaseOf(end));'],
  'while a gate is pending': ['features/delegation/graph/run/gates/ask.ts', "deps.phase(node, 'initialized');"],
  'after the answer of a person': ['features/delegation/graph/run/gates/ask.ts', "if (node.answer === 'approved') return"],
  'before the end of a graph is committed': ['features/delegation/graph/run/close.ts', 'const closed = await db.write(operations.close, {'],
  'after the end of a graph is committed': ['features/delegation/graph/run/close.ts', 'if (closed === undefined) return false;'],
  'before a graph is announced': ['features/delegation/graph/run/deliver-announcement.ts', 'const outcome = await deps.turns.announce('],
  'before a message is accepted': ['features/delegation/session-send/session-send.ts', 'await db.write(deps.acceptSend,'],
  'after a message is accepted': ['features/delegation/session-send/session-send.ts', 'announce(row);'],
  'before an answer is stored': ['features/delegation/session-send/answer.ts', 'const progress = keep('],
  'after an answer is stored': ['features/delegation/session-send/answer.ts', 'if (outcome.settled && kept !== undefined) this.#publish(due, kept);'],
  'before a kill is committed': ['features/delegation/autonomy/methods.ts', 'const { leases } = await db.write(kill,'],
  'after a kill is committed': ['features/delegation/autonomy/methods.ts', "const killed = 1 + (await stopAll(rootRunId, 'kill'));"],
  'after a killed run has ended': ['features/delegation/autonomy/methods.ts', "bus.emit('autonomy:killed'"],
};

const at = (point: string): string => `if (process.env['KILL_AT'] === '${point}') process.kill(process.pid, 'SIGKILL');`;
for (const [module, located] of Map.groupBy(Object.entries(points), ([, [file]]) => file)) {
  const replace = located.map(([point, [, text]]) => ({ from: text, to: `${at(point)} ${text}` }));
  buildIn({ name: 'killed-in-delegation', module, replace });
}
