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

export const originWords: Readonly<Record<RootRun['origin'], string>> = {
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

const endWords: Readonly<Record<NonNullable<Run['endReason']>, string>> = {
  completed: 'completed',
  failed: 'failed',
  killed: 'killed',
  watchdog_timeout: 'took too long',
  ghost_sweep: 'was lost',
};

/** How a run stands, in a word or two, and how good that is. */
export function standing({ status, endReason }: Pick<Run, 'status' | 'endReason'>): { readonly words: string; readonly tone: Tone } {
  switch (status) {
    case 'queued':
      return { words: 'queued', tone: 'neutral' };
    case 'running':
      return { words: 'running', tone: 'accent' };
    case 'completed':
      return { words: 'completed', tone: 'good' };
    case 'failed':
      return { words: endWords[endReason ?? 'failed'], tone: endReason === 'killed' ? 'warn' : 'bad' };
  }
}

/** "12K tokens, $0.04"; empty before anything was used. */
export function spentWords(tokens: number | undefined, cost: number | null | undefined): string {
  if (tokens === undefined || tokens === 0) return '';
  return `${shortCount(tokens)} tokens${cost === null ? ', price not known' : cost === undefined ? '' : `, ${money(cost)}`}`;
}

/** Enough of an id to tell it from its neighbours: ids of the same time begin alike. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
