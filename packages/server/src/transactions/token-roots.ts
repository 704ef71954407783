import { operation, query } from '../kernel/db/operation.ts';

interface Root {
  readonly rootRunId: string;
}

const ofRuns = query<{ tokenId: string }, Root>(({ db, p }) =>
  db.selectFrom('subAgentRun').select('rootRunId').distinct().where('tokenId', '=', p('tokenId')).where('endedAtMs', 'is', null),
);
const ofGraphs = query<{ tokenId: string }, { rootRunId: string | null }>(({ db, p }) =>
  db.selectFrom('graphRun').select('rootRunId').distinct().where('tokenId', '=', p('tokenId')).where('endedAtMs', 'is', null),
);

/** Returns the root runs with sub-agents or graphs of a token that have not ended. */
export const rootsOfToken = operation('autonomy.rootsOfToken', async (tx, input: { readonly tokenId: string }): Promise<string[]> => {
  const rows = [...(await tx.all(ofRuns, input)), ...(await tx.all(ofGraphs, input))];
  return [...new Set(rows.flatMap(({ rootRunId }) => (rootRunId === null ? [] : [rootRunId])))];
});
