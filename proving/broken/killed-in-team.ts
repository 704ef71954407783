import { buildIn } from './patch.ts';

/** Not a fault of the program but of its life: it is killed at the point in the life of a team that KILL_AT names. */
const die = `process.kill(process.pid, 'SIGKILL');`;

type Place = readonly [module: string, text: string];

/** Where each point lies: the kill comes before this text of this module. */
const points: Readonly<Record<string, Place>> = {
  'before a run is accepted': ['features/delegation/subagents/run/runner.ts', 'const accepted = await db.write(deps.operations.accept,'],
  'after a run is accepted': ['features/delegation/subagents/requests/spawn.ts', "if ('refused' in accepted)"],
  'before a run begins': ['features/delegation/subagents/run/runner.ts', 'const steers = await db.write(deps.operations.begin,'],
  'after a run has begun': ['features/delegation/subagents/run/runner.ts', 'events.started(begun, isResumed);'],
  'before the turn of a run is opened': ['features/delegation/subagents/run/runner.ts', 'const outcome = await deps.turns.durable('],
  'before the end of a run is committed': ['features/delegation/subagents/run/runner.ts', 'const runEnd = await conclude('],
  'after the end of a run is committed': [
    'features/delegation/subagents/run/runner.ts',
    'if (outcome.endedRun !== undefined) ended([outcome.endedRun]);',
  ],
  'before a failed run is told': ['features/delegation/subagents/completion/announce.ts', 'const isTold = await db.write(deps.operations.tell,'],
  'after a failed run is told': ['features/delegation/subagents/completion/announce.ts', 'if (!isTold) return;'],
  'before news are taken': ['features/delegation/subagents/completion/announce.ts', 'news = await db.write(deps.operations.take,'],
  'after news are taken': ['features/delegation/subagents/completion/announce.ts', 'if (!news.exists || news.rows.length === 0) return undefined;'],
  'after news are told': ['features/delegation/subagents/completion/announce.ts', "if (outcome.settled && outcome.state !== 'accepted')"],
  'before a graph is accepted': ['features/delegation/graph/run/start.ts', 'const accepted = await db.write(deps.operations.accept, {'],
  'after a graph is accepted': ['features/delegation/graph/run/start.ts', "if (accepted === 'full')"],
  'after a node has begun a run': ['features/delegation/graph/nodes/run-node.ts', 'node.runId = runId;'],
  'after the run of a node has ended': ['features/delegation/graph/nodes/run-node.ts', 'node.tokens += end.telemetry'],
  'between two tries of a node': ['features/delegation/graph/nodes/run-node.ts', 'await pause(host,'],
  'before a step of a debate is kept': ['features/delegation/graph/nodes/run-node.ts', 'if (isTyped(work)) await host.save([node]);'],
  'after the end of a node is kept': ['features/delegation/graph/nodes/run-node.ts', 'host.phase(node, phaseOf(end));'],
  'while a gate asks': ['features/delegation/graph/run/ask.ts', "deps.phase(node, 'initialized');"],
  'after the answer of a person': ['features/delegation/graph/run/ask.ts', "if (node.answer === 'approved') return"],
  'before the end of a graph is committed': ['features/delegation/graph/run/runner.ts', 'const closed = await db.write(operations.close, {'],
  'after the end of a graph is committed': ['features/delegation/graph/run/runner.ts', 'if (closed === undefined) return false;'],
  'before a graph is told': ['features/delegation/graph/run/deliver-announcement.ts', 'const told = await deps.turns.tell('],
  'before a message is accepted': ['features/delegation/session-send/session-send.ts', 'await db.write(deps.acceptSend,'],
  'after a message is accepted': ['features/delegation/session-send/session-send.ts', 'announce(row);'],
  'before an answer is kept': ['features/delegation/session-send/answer.ts', 'kept = progressOf(send, leg, outcome);'],
  'after an answer is kept': ['features/delegation/session-send/answer.ts', 'if (outcome.settled && kept !== undefined) tell(send, leg, kept);'],
  'before a kill is committed': ['features/delegation/autonomy/methods.ts', 'const { leases } = await db.write(kill,'],
  'after a kill is committed': ['features/delegation/autonomy/methods.ts', "const killed = 1 + (await stopAll(rootRunId, 'kill'));"],
  'after a killed run has ended': ['features/delegation/autonomy/methods.ts', "bus.emit('autonomy:killed'"],
};

const [module, text] = points[process.env['KILL_AT'] ?? ''] ?? [];
if (module === undefined || text === undefined) throw new Error(`there is no point ${process.env['KILL_AT']}`);
buildIn({ name: 'killed-in-team', module, replace: [{ from: text, to: `${die} ${text}` }] });
