import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';
import { obsDiagnosis } from './obs-diagnosis.ts';
import { obsTrace } from './obs-trace.ts';
import { obsReports } from './obs-reports.ts';

const AuditId = once(() => z.string().regex(/^au_[0-9a-f-]{36}$/, 'expected the id of an audit row, au_ followed by a UUID'));
const Classification = once(() => z.enum(['read', 'mutate', 'destructive', 'security']));
const Outcome = once(() => z.enum(['success', 'failure', 'denied']));
/** Matches the length limit of every id. */
const exact = once(() => z.string().min(1).max(512));

/** One decision or change that is relevant to security. */
export const AuditEntry = once(() =>
  z
    .strictObject({
      id: AuditId(),
      at: EpochMs,
      kind: z.enum(['approval', 'auth', 'skill_vet', 'security', 'audit']).describe('Subject; `audit` is everything else.'),
      classification: Classification(),
      outcome: Outcome(),
      severity: z.enum(['info', 'warning', 'error']).describe('`error`: it failed; `warning`: it was denied, or destroyed something.'),
      action: z.string(),
      actor: z.string().describe('The principal, such as `token:ops`; `system` for automatic actions.'),
      target: z.string().optional(),
      refs: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]))
        .describe('Ids, names and counts that belong to it, `traceId` among them; text that looks like a secret is removed.'),
    })
    .meta({ id: 'AuditEntry' }),
);
export type AuditEntry = z.output<ReturnType<typeof AuditEntry>>;

export const obs = {
  ...obsTrace,
  ...obsDiagnosis,
  ...obsReports,
  'obs.audit.query': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the recorded decisions and changes relevant to security, newest first.',
    description: 'Every filter is optional; they are combined with AND. A token limited to some agents sees its own actions.',
    params: () =>
      z.strictObject({
        limit: z.int().min(1).default(200).describe('Rows of one page; more than 1000 are treated as 1000.'),
        before: AuditId().optional().describe('The last row of the previous page.'),
        sinceMs: EpochMs.optional().describe('First millisecond.'),
        untilMs: EpochMs.optional().describe('The first millisecond that no longer counts.'),
        actionType: exact().optional().describe('Exactly this action, such as `tokens.create`.'),
        classification: Classification().optional(),
        outcome: Outcome().optional(),
        principalId: exact().optional(),
        target: exact().optional(),
      }),
    result: () => z.strictObject({ rows: z.array(AuditEntry()), hasMore: z.boolean() }),
    errors: ['not_found'],
    examples: [
      {
        params: { outcome: 'denied', limit: 1 },
        result: {
          rows: [
            {
              id: 'au_0199e0a0-7c00-7000-8000-000000000001',
              at: 1_790_000_000_000,
              kind: 'approval',
              classification: 'security',
              outcome: 'denied',
              severity: 'warning',
              action: 'approval.resolve',
              actor: 'token:ops',
              target: 'ap_0199e0a0-7c00-7000-8000-000000000001',
              refs: { tool: 'write', agentId: 'default', by: 'operator', traceId: '4bf92f3577b34da6a3ce929d0e0e4736' },
            },
          ],
          hasMore: true,
        },
      },
    ],
    since: '0.1.0',
  }),
};
