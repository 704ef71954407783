import { ResultRef } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { MediaLibrary } from '../../../environment/media/api.ts';
import type { SubagentsApi } from '../api.ts';
import type { RunRow } from '../run/row.ts';
import { findRun } from '../store.ts';

interface ResultsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly media: Pick<MediaLibrary, 'read'>;
}

/** Reads the complete results of runs: from the file of a large result, otherwise from the row. */
export function createResults({ db, clock, media }: ResultsDeps) {
  const refOf = ({ resultRefJson }: RunRow) => (resultRefJson === null ? undefined : ResultRef().parse(parseJson(resultRefJson)));

  async function wholeOf(row: RunRow): Promise<string> {
    const { ref, expiresAt } = refOf(row) ?? { ref: '', expiresAt: 0 };
    const file = expiresAt <= clock.ageNow() ? undefined : await media.read(ref.slice(ref.lastIndexOf('/') + 1));
    return file?.toString('utf8') ?? row.resultText ?? '';
  }

  const said: SubagentsApi['said'] = async (runId) => {
    const row = await db.read(findRun, { id: runId });
    if (row === undefined) return undefined;
    const { graphId, nodeId } = row;
    return { text: await wholeOf(row), kind: refOf(row)?.kind ?? 'text', ...(graphId !== null && nodeId !== null && { node: { graphId, nodeId } }) };
  };

  return { wholeOf, said };
}
export type Results = ReturnType<typeof createResults>;
