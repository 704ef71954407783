import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef, PrintedSessionKey, SessionKey } from '../shared/session.ts';
import { EpochMs, TurnOrigin } from '../shared/turn.ts';

export const ApprovalId = once(() => z.string().regex(/^ap_[0-9a-f-]{36}$/, 'expected the id of a request for approval, ap_ followed by a UUID'));

/** Exactly what is to be approved, uncut. */
export const ApprovalRequest = once(() =>
  z
    .strictObject({
      requestId: ApprovalId(),
      toolName: z.string(),
      action: z.string().describe('What the call does, in one line.'),
      params: z.unknown().describe('All arguments of the call, live secrets replaced by `[REDACTED]`.'),
      paramsBytes: z.int().min(0).describe('Bytes of the original arguments.'),
      digest: z.string().describe('SHA-256 of agent, conversation, tool, arguments and workspace: what an approval is bound to.'),
      reason: z.string().describe('Why it must be approved.'),
      agentId: AgentId,
      sessionKey: PrintedSessionKey,
      conversationRef: ConversationRef,
      origin: TurnOrigin,
      trustLevel: z.enum(['clean', 'tainted']).describe('`tainted`: the model had read text from outside when it made the call.'),
      createdAt: EpochMs,
      timeoutMs: z.int().min(0),
      expiresAt: EpochMs.describe('An undecided call is then denied by `system:timeout`.'),
    })
    .meta({ id: 'ApprovalRequest' }),
);
export type ApprovalRequest = z.output<ReturnType<typeof ApprovalRequest>>;

const choice = once(() => ({
  approved: z.boolean(),
  approvedBy: z
    .string()
    .min(1)
    .max(128)
    .regex(/^(?!system:)\P{C}*$/u, 'expected a name of one line that does not begin with "system:"')
    .default('operator')
    .describe('A name to remember; the audit row has the token in any case.'),
  reason: z.string().min(1).max(1000).optional().describe('The model receives the reason for a denial.'),
}));

const example = {
  requestId: 'ap_0199e0a0-7c00-7000-8000-000000000001',
  toolName: 'write',
  action: 'write notes/today.md',
  params: { path: 'notes/today.md', content: 'Meet Ada at nine' },
  paramsBytes: 55,
  digest: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
  reason: 'text from outside, private data and an effect meet in this turn',
  agentId: 'default',
  sessionKey: 'ada:desk',
  conversationRef: 'cv_47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  origin: 'rpc',
  trustLevel: 'tainted',
  createdAt: 1_790_000_000_000,
  timeoutMs: 300_000,
  expiresAt: 1_790_000_300_000,
} as const;

export const adminApproval = {
  'admin.approval.pending': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the tool calls pending an approval, oldest first.',
    description: 'When arguments are long, a page holds fewer requests than `total`; get the next one with `after`.',
    params: () => z.strictObject({ after: ApprovalId().optional().describe('The last request of the previous page.') }),
    result: () => z.strictObject({ requests: z.array(ApprovalRequest()), total: z.int().min(0) }),
    examples: [{ params: {}, result: { requests: [example], total: 1 } }],
    since: '0.1.0',
  }),
  'admin.approval.resolve': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Approves or denies one call; of several decisions about it the first one wins.',
    description:
      'The call continues at once if its turn still waits. When the turn has ended, an approval is valid for the same call once, within ten minutes. A second decision fails with `conflict`, which names the first decider.',
    params: () => z.strictObject({ requestId: ApprovalId(), ...choice() }),
    result: () => z.strictObject({ requestId: ApprovalId(), approved: z.boolean(), approvedBy: z.string(), reason: z.string().nullable() }),
    errors: ['not_found', 'conflict'],
    examples: [
      {
        params: { requestId: example.requestId, approved: true },
        result: { requestId: example.requestId, approved: true, approvedBy: 'operator', reason: null },
      },
    ],
    since: '0.1.0',
  }),
  'admin.approval.resolveAll': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Approves or denies all pending calls, or those of one session key.',
    params: () => z.strictObject({ sessionKey: SessionKey.optional().describe('Only calls of conversations with this key.'), ...choice() }),
    result: () => z.strictObject({ resolved: z.int().min(0), requestIds: z.array(ApprovalId()) }),
    examples: [{ params: { approved: false, sessionKey: 'ada:desk', reason: 'not now' }, result: { resolved: 1, requestIds: [example.requestId] } }],
    since: '0.1.0',
  }),
  'admin.approval.clearDenialCache': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Forgets denials, so that the same calls ask again.',
    params: () => z.strictObject({ sessionKey: SessionKey.optional().describe('Only those of conversations with this key.') }),
    result: () => z.strictObject({ cleared: z.literal(true) }),
    examples: [{ params: {}, result: { cleared: true } }],
    since: '0.1.0',
  }),
};
