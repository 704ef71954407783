import { setTimeout as pause } from 'node:timers/promises';
import type { Client, GapEvent, ServerEvent } from '@gatehouse/client';
import { eventBatches } from '../connection/event-batches.ts';
import { CliError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { type GraphView, stateText, waitingForYou } from './graph-text.ts';
import { span } from './runs-text.ts';

/** A line for each change of a node, a counter that is overwritten in a terminal, or nothing. */
export type Progress = 'lines' | 'counter' | 'none';

const kinds = ['graph:node_updated', 'graph:completed'] as const;
/** Polling interval: each poll is one of the hundred calls that a token has per minute. */
const leastPauseMs = 1000;
const noteLength = 60;

export async function readGraph(client: Client, graphId: string): Promise<GraphView> {
  const found = await client.call('graph.status', { graphId });
  if (!('executionOrder' in found)) throw new CliError('Unexpected answer: a list instead of a graph.');
  return found;
}

/** Follows a graph until it ends and returns its final state. */
export async function followGraph(client: Client, graphId: string, progress: Progress, io: Io, signal: AbortSignal): Promise<GraphView> {
  const seen = new Map<string, string>();
  let beganMs: number | undefined;
  const show = (nodeId: string, words: string, note: string | undefined): void => {
    if (progress !== 'lines' || seen.get(nodeId) === `${words} ${note}`) return;
    seen.set(nodeId, `${words} ${note}`);
    const took = beganMs === undefined ? '' : span(Math.max(0, io.now() - beganMs));
    printLine(io.stdout, `${took.padStart(8)}  ${nodeId}  ${words}${note === undefined ? '' : `: ${plainText(shorten(note, noteLength))}`}`);
    if (words === waitingForYou) printLine(io.stdout, `${' '.repeat(8)}  gatehouse graph answer ${graphId} ${nodeId} yes`);
  };
  for await (const batch of eventBatches(client, kinds, signal)) {
    const own = batch.filter((event) => isOf(event, graphId));
    if (batch.length > 0 && own.length === 0) continue;
    for (const event of own)
      if (event.kind === 'graph:node_updated') {
        const { nodeId, status, progress: note, waitsForAnswer, error } = event.payload;
        // The question of a gate is in the view, which is loaded next.
        if (status !== 'pending' && waitsForAnswer !== true) show(nodeId, stateText({ status }), error ?? note);
      }
    const view = await readGraph(client, graphId);
    beganMs = view.startedAt;
    for (const id of view.executionOrder) {
      const node = view.nodes[id];
      if (node !== undefined && node.status !== 'pending')
        show(id, stateText(node), node.error ?? (node.waitsForAnswer === true ? node.question : node.progress));
    }
    const { completed, failed, skipped, total, running } = view.stats;
    if (progress === 'counter') io.stderr.write(`\r${completed + failed + skipped} of ${total} nodes finished, ${running} running\x1b[K`);
    if (view.isTerminal) {
      if (progress === 'counter') io.stderr.write('\r\x1b[K');
      return view;
    }
    await pause(leastPauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  throw new CliError('The event stream ended before the graph.');
}

function isOf(event: ServerEvent | GapEvent, graphId: string): boolean {
  return event.kind === 'gap' || ('graphId' in event.payload && event.payload.graphId === graphId);
}
