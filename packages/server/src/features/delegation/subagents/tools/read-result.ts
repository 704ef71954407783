import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { Results } from '../completion/results.ts';
import { isEnded } from '../run/row.ts';
import { findRuns } from '../status/list-store.ts';
import { reachOf, unknownRun } from '../status/reach.ts';
import { outsideOf } from './outside.ts';

const Read = once(() =>
  z.strictObject({
    runId: z.string().min(1).max(64),
    offset: z.int().min(0).default(0).describe('Characters to skip.'),
    limit: z.int().min(1).max(20_000).default(8000).describe('Characters.'),
  }),
);

/** Creates `read_result`: the whole result of a run, in parts. */
export function createReadResultTool(db: Db, results: Pick<Results, 'wholeOf'>): Tool<ReturnType<typeof Read>> {
  return {
    name: 'read_result',
    description: 'Reads the whole result of a sub-agent of this conversation, in parts.',
    get args() {
      return Read();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs: 10_000,
    describe: ({ runId }) => `read the result of ${runId}`,
    async run({ runId, offset, limit }, { call }) {
      const [row] = await db.read(findRuns, { ...reachOf(call), ids: [runId] });
      if (row === undefined) throw unknownRun(runId);
      if (!isEnded(row)) throw new AppError('precondition_failed', 'runId: it has not ended yet', { param: 'runId' });
      const text = await results.wholeOf(row);
      const part = headOf(text.slice(offset), limit);
      const left = Math.max(0, text.length - offset - part.length);
      return {
        content: `${part}\n[characters ${offset} to ${offset + part.length} of ${text.length}${left === 0 ? '' : `, ${left} more`}]`,
        outside: outsideOf([row]),
      };
    },
  };
}
