import { AgentId, once, ToolPattern, TurnOrigin, UnattendedApprovals } from '@gatehouse/contract';
import * as z from 'zod';

const Action = once(() => z.enum(['auto', 'ask', 'deny']));

const ApprovalRule = once(() =>
  z.strictObject({
    tools: z
      .array(ToolPattern)
      .min(1)
      .max(100)
      .describe('Tools that the rule covers; `group:<name>` names a group, `*` at the end stands for the rest of a name.'),
    agents: z.array(AgentId).min(1).max(100).optional().describe('Only calls of these agents.'),
    origins: z.array(TurnOrigin).min(1).optional().describe('Only calls of turns of these origins.'),
    match: z
      .record(z.string().min(1).max(128), z.string().max(1024))
      .optional()
      .describe(
        'Only calls whose arguments match: name to pattern, in which `*` stands for any text and `?` for one character. Text is matched as it is, any other value as its JSON. For `ask` and `deny`, other spellings of a path or address (doubled slashes, capitals in a host) match as well; a path with `.` or `..` matches every pattern of these, and none of `auto`.',
      ),
    exact: z
      .boolean()
      .default(false)
      .describe('Only calls without arguments that `match` does not name. Without it, a call that has further arguments matches too.'),
    action: Action().describe('`auto`: runs; `ask`: waits for an approval; `deny`: is refused.'),
    tainted: z
      .boolean()
      .default(false)
      .describe(
        'With `auto`: runs without asking even when text from outside and private data meet in the turn. The author of that text may then decide what runs.',
      ),
  }),
);
export type ApprovalRule = z.output<ReturnType<typeof ApprovalRule>>;

/** Section `approvals`: which calls of tools wait for a person. */
export const ApprovalsConfig = once(() =>
  z.strictObject({
    mode: Action()
      .default('auto')
      .describe(
        'For state-changing and outward calls that no rule names. With `auto`, calls that a model makes after reading text from outside still ask.',
      ),
    rules: z.array(ApprovalRule()).max(200).default([]).describe('The first rule that matches a call decides.'),
    timeoutMs: z.int().min(1000).max(86_400_000).default(300_000).describe('How long a call waits; an undecided call is then denied.'),
    unattended: UnattendedApprovals.default('wait').describe(
      'What happens to a call that needs an approval in unattended work (jobs, webhooks, heartbeats, messages between conversations, sub-agents, graphs). `wait`: the run waits for the decision, also over restarts, and uses no slot meanwhile; `refuse`: the call is refused and counted as a refused effect; calls already waiting when this is set stay open until they are decided.',
    ),
    unattendedTimeoutMs: z
      .int()
      .min(1000)
      .max(7 * 86_400_000)
      .default(86_400_000)
      .describe('How long such a run waits; an undecided call is then denied, and the run continues without it.'),
    approvalCacheMs: z
      .int()
      .min(0)
      .max(3_600_000)
      .default(30_000)
      .describe('How long an approval holds for exactly the same call in the same conversation; 0: once.'),
    denialCacheMs: z
      .int()
      .min(0)
      .max(3_600_000)
      .default(60_000)
      .describe('How long a denial holds for exactly the same call in the same conversation.'),
  }),
);
export type ApprovalsConfig = z.output<ReturnType<typeof ApprovalsConfig>>;
