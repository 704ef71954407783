import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { TokenScope } from '../scopes.ts';
import { windowBudgets } from '../shared/agent-config.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

export const TokenId = once(() =>
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'expected 1 to 64 letters, digits, ".", "_" or "-", starting with a letter or digit'),
);
/** What the /v1 routes accept from the holder of a token; missing keys follow `gateway.compat`. */
export const TokenCompat = once(() =>
  z.strictObject({
    fields: z.enum(['strict', 'extended']).optional().describe('Request fields that POST /v1/chat/completions accepts.'),
    tools: z.enum(['agent', 'none']).optional().describe('Whether /v1 turns may use the agent’s tools.'),
  }),
);
export type TokenCompat = z.output<ReturnType<typeof TokenCompat>>;
const Compat = once(() => TokenCompat().optional().describe('Overrides gateway.compat for this token.'));

/** A person to whom conversations, memories, approvals and budgets belong, whichever token they come through. */
export const PersonName = once(() =>
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'expected 1 to 64 letters, digits, ".", "_" or "-", starting with a letter or digit'),
);
const Person = once(() => PersonName().optional().describe('The person that the token belongs to; its tokens share conversations and memories.'));

/** Limits of a person, or of a token. */
export const OwnerLimits = once(() => ({
  budgets: z
    .strictObject(windowBudgets)
    .optional()
    .describe(
      'Hard caps over all calls of models, whichever agent makes them; a call that could exceed one is refused with its name and when it frees.',
    ),
  rateLimit: z
    .strictObject({
      maxRequests: z.int().min(1).describe('Requests per window.'),
      windowMs: z.int().min(1000).max(86_400_000).default(60_000).describe('Length of the window, in milliseconds.'),
    })
    .optional()
    .describe('Limit of requests, in addition to `gateway.rateLimit`.'),
}));

const Scopes = once(() => z.array(TokenScope).max(6));
const Secret = once(() => z.string().min(32).describe('Shown only once; only a digest is kept.'));

const created = once(() => ({
  id: TokenId(),
  secret: Secret(),
  scopes: Scopes(),
  agents: z.array(AgentId).optional(),
  compat: Compat(),
  person: Person(),
  ...OwnerLimits(),
  createdAt: EpochMs,
  expiresAt: EpochMs.optional(),
  message: z.string(),
}));
const exampleSecret = 'gh_c2VjcmV0LW9mLWFuLWV4YW1wbGUtdG9rZW4tbm90LXJlYWw';

export const tokens = {
  'tokens.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the tokens in force, without their secrets.',
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        tokens: z.array(
          z.strictObject({
            id: TokenId(),
            scopes: Scopes(),
            source: z.enum(['config', 'generated', 'created']),
            agents: z.array(AgentId).optional(),
            compat: Compat(),
            person: Person(),
            ...OwnerLimits(),
            createdAt: EpochMs.optional().describe('Absent for tokens of config.yaml.'),
            expiresAt: EpochMs.optional(),
            lastUsedAt: EpochMs.optional().describe('Accurate to a minute.'),
          }),
        ),
        total: z.int().min(0),
      }),
    examples: [{ params: {}, result: { tokens: [{ id: 'ops', scopes: ['*'], source: 'config' }], total: 1 } }],
    since: '0.1.0',
  }),
  'tokens.create': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Creates an access token, valid at once; the secret is returned only here.',
    description:
      'No token creates one wider than itself in scopes, agents or expiry. An empty scope list means all scopes. A token of a person has the budgets of the person (`persons.<name>.budgets`), and none itself.',
    params: () =>
      z.strictObject({
        id: TokenId().optional().describe('A random id otherwise.'),
        replace: z
          .boolean()
          .optional()
          .describe('Replaces a token of this id created by tokens.create, in one step: when it fails the old secret stays valid.'),
        scopes: Scopes(),
        agents: z.array(AgentId).min(1).optional().describe('The only agents that the token may reach.'),
        expiresAt: EpochMs.optional(),
        compat: Compat(),
        person: Person(),
        ...OwnerLimits(),
      }),
    result: () => z.strictObject(created()),
    errors: ['conflict', 'denied', 'precondition_failed'],
    examples: [
      {
        params: { id: 'ci', scopes: ['rpc'] },
        result: {
          id: 'ci',
          secret: exampleSecret,
          scopes: ['rpc'],
          createdAt: 1790000000000,
          message: 'Store the secret now: it is not shown again.',
        },
      },
      {
        params: { id: 'opencode', scopes: ['api'], compat: { fields: 'extended', tools: 'none' } },
        result: {
          id: 'opencode',
          secret: exampleSecret,
          scopes: ['api'],
          compat: { fields: 'extended', tools: 'none' },
          createdAt: 1790000000000,
          message: 'Store the secret now: it is not shown again.',
        },
      },
    ],
    since: '0.1.0',
  }),
  'tokens.revoke': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Revokes a token at once; its open sockets and streams are closed.',
    description:
      'Calls running on a socket have two seconds to answer. A token of `config.yaml` is removed from the file, and the token file of the first start is emptied; their secrets open nothing any more, also where a rollback or a copy brings them back. Conversations belong to the id of a token: one created later with the same id has them again.',
    params: () => z.strictObject({ id: TokenId() }),
    result: () => z.strictObject({ id: TokenId(), revoked: z.literal(true), message: z.string() }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'unavailable'],
    examples: [{ params: { id: 'ci' }, result: { id: 'ci', revoked: true, message: 'The token no longer grants access.' } }],
    since: '0.1.0',
  }),
  'tokens.rotate': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Replaces the secret of a token in one step; id and scopes stay, the old secret becomes invalid with the call.',
    description:
      'Of several rotations of one token within a second exactly one succeeds, the others fail with `conflict`. A token that is wider than the caller, or has expired, cannot be rotated. The secret of a token of config.yaml is replaced in the store when it is there as `"${NAME}"`, and otherwise in the file; that of the first start in the token file.',
    params: () => z.strictObject({ id: TokenId() }),
    result: () => z.strictObject({ ...created(), rotated: z.literal(true) }),
    errors: ['not_found', 'conflict', 'denied', 'precondition_failed', 'rate_limited', 'unavailable'],
    examples: [
      {
        params: { id: 'ci' },
        result: {
          id: 'ci',
          secret: exampleSecret,
          scopes: ['rpc'],
          createdAt: 1790000000000,
          rotated: true,
          message: 'Store the secret now: it is not shown again.',
        },
      },
    ],
    since: '0.1.0',
  }),
};
