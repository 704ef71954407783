import * as z from 'zod';
import { method } from '../method.ts';
import { RootRunId } from '../shared/sub-agent.ts';

const rootRunId = 'root-turn-tn_00000000-0000-7000-8000-000000000001';

export const lease = {
  'lease.revoke': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Revokes leases: a call that passed its check completes, the next one is refused.',
    description:
      'At least one of `leaseId` and `rootRunId`; with both, the leases of either. Revoking a lease revokes all leases below it. A root run becomes `revoked` and never resumes.',
    params: () =>
      z
        .strictObject({ leaseId: z.string().min(1).max(256).optional(), rootRunId: RootRunId().optional() })
        .refine(({ leaseId, rootRunId: root }) => leaseId !== undefined || root !== undefined, {
          message: 'expected leaseId or rootRunId',
          path: ['leaseId'],
        }),
    result: () => z.strictObject({ revoked: z.int().min(0).describe('Leases that were valid until now.') }),
    examples: [{ params: { rootRunId }, result: { revoked: 3 } }],
    since: '0.1.0',
  }),
};
