import * as z from 'zod';
import { method } from '../method.ts';
import { RootRunId } from '../shared/sub-agent.ts';

const rootRunId = 'root-turn-tn_00000000-0000-7000-8000-000000000001';

export const autonomy = {
  'autonomy.evict': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Lowers the profile of a root run to the default one from its next decision on; nothing is aborted.',
    params: () => z.strictObject({ rootRunId: RootRunId() }),
    result: () => z.strictObject({ evicted: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { rootRunId }, result: { evicted: true } }],
    since: '0.1.0',
  }),
};
