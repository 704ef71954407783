import { t } from '../../language.ts';
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
  v1: t('a request to /v1'),
  rpc: t('a call'),
  api: t('a message'),
  webhook: t('a webhook'),
  cron: t('a job'),
  heartbeat: t('a heartbeat'),
  channel: t('a channel'),
  subagent: t('a sub-agent'),
  graph: t('a graph'),
  mcp: t('an MCP client'),
  background: t('a background task'),
};

/** Returns what a root run is called without a title of its conversation. */
export const nameOfRoot = ({ task, agentId, origin }: RootRun): string =>
  task ?? t('{agentId}, started by {originLabels}', { agentId, originLabels: originLabels[origin] });

const endLabels: Readonly<Record<NonNullable<Run['endReason']>, string>> = {
  completed: 'completed',
  failed: 'failed',
  killed: 'killed',
  watchdog_timeout: t('timed out'),
  ghost_sweep: 'lost',
};

/** Returns the state of a run as a short label with its tone. */
export function standing({ status, endReason }: Pick<Run, 'status' | 'endReason'>): { readonly text: string; readonly tone: Tone } {
  switch (status) {
    case 'queued':
      return { text: t('queued'), tone: 'neutral' };
    case 'running':
      return { text: t('running'), tone: 'accent' };
    case 'completed':
      return { text: t('completed'), tone: 'good' };
    case 'failed':
      return { text: endLabels[endReason ?? 'failed'], tone: endReason === 'killed' ? 'warn' : 'bad' };
  }
}

/** Returns "12K tokens, $0.04"; empty before anything was used. */
export function spentText(tokens: number | undefined, cost: number | null | undefined): string {
  if (tokens === undefined || tokens === 0) return '';
  return t('{tokens} tokens{cost}', {
    tokens: shortCount(tokens),
    cost: cost === null ? t(', price unknown') : cost === undefined ? '' : `, ${money(cost)}`,
  });
}

/** Returns the end of an id: ids created at about the same time share their beginning. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
