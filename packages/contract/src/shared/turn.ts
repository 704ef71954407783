import * as z from 'zod';

/** Why a turn ended (json-rpc.md §4; decisions: the turn). */
export const FinishReason = z
  .enum([
    'stop',
    'max_steps',
    'budget_exceeded',
    'circuit_open',
    'provider_degraded',
    'context_loop',
    'context_exhausted',
    'output_starved',
    'timeout',
    'aborted',
    'background_pending',
    'error',
    'command',
  ])
  .meta({ id: 'FinishReason' });
export type FinishReason = z.output<typeof FinishReason>;

/** Tokens of a turn, over all its model calls. */
export const TokensUsed = z.strictObject({ input: z.int().min(0), output: z.int().min(0), total: z.int().min(0) }).meta({ id: 'TokensUsed' });
export type TokensUsed = z.output<typeof TokensUsed>;

/** Cost of all model calls of a turn. */
export const TurnCostUsd = z
  .number()
  .min(0)
  .nullable()
  .optional()
  .describe('Cost of all model calls of the turn, in US dollars; null when the price of one of them is not known.');

/** How long a model reasons before its answer, where it has a choice. */
export const AnswerEffort = z.enum(['low', 'medium', 'high']).meta({ id: 'AnswerEffort' });
export type AnswerEffort = z.output<typeof AnswerEffort>;

/** Milliseconds since the Unix epoch. */
export const EpochMs = z.int().min(0).meta({ id: 'EpochMs' });

/** Origin of a turn; it limits what the turn may do. */
export const TurnOrigin = z
  .enum(['v1', 'rpc', 'api', 'webhook', 'cron', 'heartbeat', 'channel', 'subagent', 'graph', 'mcp', 'background'])
  .meta({ id: 'TurnOrigin' });
export type TurnOrigin = z.output<typeof TurnOrigin>;
