import { acceptWithin } from './accept-run.ts';
import { killWithin } from './end-run.ts';
import type { RunAcceptance } from '../features/delegation/subagents/requests/acceptance.ts';
import type { EndedRun } from '../features/delegation/subagents/run/row.ts';
import { addSteer, allowSteer } from '../features/delegation/subagents/requests/steer-store.ts';
import { lockRun } from '../features/delegation/subagents/store.ts';
import { operation } from '../kernel/db/operation.ts';

interface Steering {
  readonly runId: string;
  /** No message to this run since then. */
  readonly beforeMs: number;
  readonly atMs: number;
}

/** Why a run cannot be steered. */
export type NotSteered = 'not_running' | 'too_soon';

/** Stores a message for a running run, to be taken at its next step. */
export const injectSteer = operation(
  'subagents.inject',
  async (
    tx,
    { runId: id, text, steerId, ...when }: Steering & { readonly text: string; readonly steerId: string },
  ): Promise<NotSteered | undefined> => {
    if ((await lockRun(tx, id))?.state !== 'running') return 'not_running';
    if (!(await allowSteer(tx, { id, ...when }))) return 'too_soon';
    await addSteer(tx, { id: steerId, runId: id, text, atMs: when.atMs });
    return undefined;
  },
);

/** Ends a run with everything that it delegated, and starts a replacement, in one commit. */
export const replaceRun = operation(
  'subagents.replace',
  async (tx, { runId: id, next, ...when }: Steering & { readonly next: RunAcceptance }): Promise<NotSteered | { readonly ended: EndedRun[] }> => {
    const row = await lockRun(tx, id);
    if (row === undefined || row.endedAtMs !== null) return 'not_running';
    if (!(await allowSteer(tx, { id, ...when }))) return 'too_soon';
    const ended = await killWithin(tx, { which: { runId: id }, endReason: 'killed', errorKind: 'steered', notify: false, atMs: when.atMs });
    // The current requester: the original one may have ended, and its announcement been redirected.
    const { announceTo, announceRef, announceTargetJson, announceRunId } = row;
    await acceptWithin(tx, { ...next, row: { ...next.row, announceTo, announceRef, announceTargetJson, announceRunId } });
    return { ended };
  },
);
