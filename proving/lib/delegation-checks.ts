import type { Books } from './delegation-books.ts';
import { sayingOf, tasks } from './delegation-model.ts';
import { noncesIn } from './provider.ts';

/** Work that was acknowledged before a kill. */
export interface Acknowledged {
  readonly runs: readonly string[];
  readonly graphs: readonly string[];
  /** Texts of messages. */
  readonly sends: readonly string[];
}

const terminalRoots: ReadonlySet<string> = new Set(['completed', 'failed', 'revoked']);

/** Faults once all is quiet, each in one line that names the thing. */
export function faultsIn(books: Books, acked: Acknowledged): string[] {
  return [...lost(books, acked), ...open(books), ...orphans(books), ...untrue(books), ...twice(books), ...announcements(books)];
}

/** Returns acknowledged work that is missing. */
function lost({ runs, graphs, sends }: Books, acked: Acknowledged): string[] {
  return [
    ...acked.runs.filter((id) => !runs.some((run) => run.id === id)).map((id) => `lost: run ${id} was acknowledged`),
    ...acked.graphs.filter((id) => !graphs.some((graph) => graph.id === id)).map((id) => `lost: graph ${id} was acknowledged`),
    ...acked.sends.filter((text) => !sends.some((send) => send.text === text)).map((text) => `lost: message "${text}" was acknowledged`),
  ];
}

/** Returns accepted work without an end. */
function open(books: Books): string[] {
  return [
    ...books.openWork.map(({ kind, work_key: key, state }) => `open: work ${kind} ${key} is ${state}`),
    ...books.runs.filter(({ state }) => state !== 'completed' && state !== 'failed').map(({ id, state }) => `open: run ${id} is ${state}`),
    ...books.graphs.filter(({ state }) => state === 'running').map(({ id }) => `open: graph ${id} runs`),
    ...books.nodes
      .filter(({ state }) => state === 'running' || state === 'pending')
      .map((node) => `open: node ${node.graph_id} ${node.node_id} is ${node.state}`),
    ...books.sends.filter(({ state }) => state === 'open').map(({ id, leg }) => `open: message ${id} at ${leg}`),
    ...books.roots
      .filter((root) => !terminalRoots.has(root.state) || root.open_runs + root.open_graphs + root.open_scripts !== 0)
      .map((root) => `open: root ${root.id} is ${root.state} with ${root.open_runs} runs, ${root.open_graphs} graphs, ${root.open_scripts} scripts`),
    ...books.leases.filter((lease) => lease.ended_at_ms === null).map(({ id, run_id: runId }) => `open: lease ${id} of ${runId}`),
    ...books.runningTurns.map(({ id, origin }) => `open: turn ${id} of ${origin}`),
  ];
}

function orphans({ runs, graphs, roots, nodes }: Books): string[] {
  return runs.flatMap((run) => {
    const lacks = [
      run.parent_run_id !== null && !runs.some(({ id }) => id === run.parent_run_id) && 'its parent',
      run.graph_id !== null && !graphs.some(({ id }) => id === run.graph_id) && 'its graph',
      run.graph_id !== null && !nodes.some((node) => node.graph_id === run.graph_id && node.node_id === run.node_id) && 'its node',
      !roots.some(({ id }) => id === run.root_run_id) && 'its root',
    ].filter((what) => what !== false);
    return lacks.map((what) => `orphan: run ${run.id} without ${what}`);
  });
}

const failing: readonly string[] = [tasks.fail, tasks.hold, tasks.gather];

/** Returns ends that do not match what happened. */
function untrue({ runs, graphs, nodes, sends }: Books): string[] {
  return [
    ...runs.flatMap((run) => {
      const mayFail = failing.some((words) => run.task.includes(words));
      if (run.state === 'failed' && !mayFail) return [`untrue: run ${run.id} failed (${run.error_kind}): ${run.task}`];
      if (run.state !== 'completed') return [];
      const nonce = noncesIn(run.result_text).at(-1) ?? 'nothing';
      const saying = (Object.keys(tasks) as (keyof typeof tasks)[]).some((task) => run.result_text === sayingOf(task, nonce));
      return saying && !run.task.includes(tasks.fail) && !run.task.includes(tasks.hold)
        ? []
        : [`untrue: run ${run.id} completed with ${JSON.stringify(run.result_text)}: ${run.task}`];
    }),
    ...graphs.filter(({ state }) => state !== 'completed').map(({ id, state }) => `untrue: graph ${id} ${state}`),
    ...nodes.filter(({ state }) => state !== 'completed').map((node) => `untrue: node ${node.graph_id} ${node.node_id} ${node.state}: ${node.error}`),
    ...sends.filter(({ state }) => state !== 'done').map(({ id, state }) => `untrue: message ${id} ${state}`),
  ];
}

/** Runs of one node in one attempt; the vote has two voters, the debate two speakers. */
const runsOf: Readonly<Record<string, number>> = { debate: 2, vote: 2, gate: 0 };

/** Returns work that was started more often than requested. */
function twice({ runs, nodes, said, sends }: Books): string[] {
  const found = nodes.flatMap((node) => {
    const begun = runs.filter((run) => run.graph_id === node.graph_id && run.node_id === node.node_id).length;
    const due = (runsOf[node.node_id] ?? 1) * node.attempt;
    return begun === due ? [] : [`twice: node ${node.graph_id} ${node.node_id} has ${begun} runs after ${node.attempt} tries, not ${due}`];
  });
  for (const { id, text } of sends) {
    const copies = said.filter(({ role, content }) => role === 'user' && content === text).length;
    if (copies !== 1) found.push(`twice: message ${id} is in its conversation ${copies} times`);
  }
  const children = new Map<string, number>();
  for (const { parent_run_id: parent } of runs) if (parent !== null) children.set(parent, (children.get(parent) ?? 0) + 1);
  for (const [parent, count] of children) if (count !== 1) found.push(`twice: run ${parent} has ${count} sub-agents instead of one`);
  return found;
}

function announcements(books: Books): string[] {
  const inInbox = (key: string): number => books.inbox.filter(({ op_key: opKey }) => opKey === key).length;
  const inConversations = (text: string): number =>
    books.said.filter(({ role, content }) => (role === 'user' || role === 'assistant') && content.includes(text)).length;
  return [
    ...books.runs.flatMap((run) => {
      const found = `${inConversations(`Sub-agent ${run.id} `)} in conversations, ${inInbox(`subagent:${run.id}`)} in the inbox`;
      const due: Readonly<Record<string, string>> = {
        turn: '1 in conversations, 0 in the inbox',
        inbox: '0 in conversations, 1 in the inbox',
        none: '0 in conversations, 0 in the inbox',
        seen: '0 in conversations, 0 in the inbox',
      };
      if (run.announced === 'none' && run.announce_to !== 'none') return [`unannounced: run ${run.id} was never announced`];
      return found === due[run.announced] ? [] : [`unannounced: run ${run.id} (${run.announced}) is announced ${found}`];
    }),
    ...books.graphs.flatMap(({ id }) => {
      const times = inInbox(`graph:${id}:end`) + inConversations(`Graph ${id}, which was started for this conversation, has ended`);
      return times === 1 ? [] : [`unannounced: graph ${id} is announced ${times} times`];
    }),
    ...books.sends.flatMap(({ id, announced }) =>
      inInbox(`session_send:${id}`) === announced
        ? []
        : [`unannounced: message ${id} is announced ${inInbox(`session_send:${id}`)} times, not ${announced}`],
    ),
  ];
}
