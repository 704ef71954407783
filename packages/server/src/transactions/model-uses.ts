import type { StoredUse } from '../features/agents/providers/api.ts';
import { operation, query } from '../kernel/db/operation.ts';

/** Enough to see that a model is in use; a person does not read more. */
const maxRows = 1000;
/** What may name a model; the caller reads the JSON. */
const names = '%"model":%';

const jobs = query<object, { readonly name: string; readonly agentId: string; readonly json: string }>(({ db }) =>
  db
    .selectFrom('cronJob')
    .select(['name', 'agentId', 'payloadJson as json'])
    .where('state', '<>', 'one_shot_terminal')
    .where('payloadJson', 'like', names)
    .orderBy('name')
    .limit(maxRows),
);
const savedGraphs = query<object, { readonly label: string; readonly json: string }>(({ db }) =>
  db.selectFrom('savedGraph').select(['label', 'definitionJson as json']).where('definitionJson', 'like', names).orderBy('label').limit(maxRows),
);
const runningGraphs = query<object, { readonly id: string; readonly json: string }>(({ db }) =>
  db
    .selectFrom('graphRun')
    .select(['id', 'definitionJson as json'])
    .where('endedAtMs', 'is', null)
    .where('definitionJson', 'like', names)
    .orderBy('createdAtMs')
    .limit(maxRows),
);

/** Returns the jobs and graphs that may name models. */
export const readModelUses = operation('providers.modelUses', async (tx): Promise<StoredUse[]> => [
  ...(await tx.all(jobs, {})).map(({ name, agentId, json }) => ({ where: `the job "${name}" of ${agentId}`, json })),
  ...(await tx.all(savedGraphs, {})).map(({ label, json }) => ({ where: `the saved graph "${label}"`, json })),
  ...(await tx.all(runningGraphs, {})).map(({ id, json }) => ({ where: `the graph run ${id}`, json })),
]);
