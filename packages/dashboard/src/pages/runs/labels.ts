import { money, shortCount } from '../../data/format.ts';
import type { Tone } from '../../ui/parts.tsx';
import type { RootRun, Run } from './run-state.ts';

export const rootTones: Readonly<Record<RootRun['state'], Tone>> = {
  active: 'accent',
  completed: 'good',
  failed: 'bad',
  revoked: 'warn',
  orphaned: 'warn',
};

export const originLabels: Readonly<Record<RootRun['origin'], string>> = {
  v1: 'a request to /v1',
  rpc: 'a call',
  api: 'a message',
  webhook: 'a webhook',
  cron: 'a job',
  heartbeat: 'a heartbeat',
  channel: 'a channel',
  subagent: 'a sub-agent',
  graph: 'a graph',
  mcp: 'an MCP client',
  background: 'a background task',
};

/** Returns what a root run is called without a title of its conversation. */
export const nameOfRoot = ({ task, agentId, origin }: RootRun): string => task ?? `${agentId}, started by ${originLabels[origin]}`;

const endLabels: Readonly<Record<NonNullable<Run['endReason']>, string>> = {
  completed: 'completed',
  failed: 'failed',
  killed: 'killed',
  watchdog_timeout: 'timed out',
  ghost_sweep: 'lost',
};

/** Returns the state of a run as a short label with its tone. */
export function standing({ status, endReason }: Pick<Run, 'status' | 'endReason'>): { readonly text: string; readonly tone: Tone } {
  switch (status) {
    case 'queued':
      return { text: 'queued', tone: 'neutral' };
    case 'running':
      return { text: 'running', tone: 'accent' };
    case 'completed':
      return { text: 'completed', tone: 'good' };
    case 'failed':
      return { text: endLabels[endReason ?? 'failed'], tone: endReason === 'killed' ? 'warn' : 'bad' };
  }
}

/** Returns "12K tokens, $0.04"; empty before anything was used. */
export function spentText(tokens: number | undefined, cost: number | null | undefined): string {
  if (tokens === undefined || tokens === 0) return '';
  return `${shortCount(tokens)} tokens${cost === null ? ', price unknown' : cost === undefined ? '' : `, ${money(cost)}`}`;
}

/** Returns the end of an id: ids created at about the same time share their beginning. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
