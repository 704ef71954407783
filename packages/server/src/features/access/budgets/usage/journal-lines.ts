import { TurnOrigin } from '@gatehouse/contract';
import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { CallsOf } from '../api.ts';

const tokens = z.number().nonnegative();
const nano = z.number();
const turn = z.strictObject({
  conversationRef: z.string(),
  sessionKey: z.string(),
  origin: TurnOrigin,
  traceId: z.string(),
  startedAtMs: z.number(),
  bootId: z.string(),
  refs: z.record(z.string(), z.string()).optional(),
  synthetic: z.boolean().optional(),
  recordId: z.string().optional(),
  rootRunId: z.string().optional(),
});
const node = z.strictObject({ graphId: z.string(), nodeId: z.string() });
const of = z.strictObject({
  id: z.string(),
  agentId: z.string(),
  principalId: z.string(),
  conversationRef: z.string().nullable(),
  rootRunId: z.string().optional(),
  runId: z.string().optional(),
  node: node.optional(),
  summarizes: node.optional(),
  turn: turn.optional(),
});
const record = z.strictObject({
  provider: z.string(),
  modelId: z.string(),
  operation: z.string(),
  usage: z.strictObject({ input: tokens, output: tokens, cacheRead: tokens, cacheWrite: tokens, estimated: z.boolean() }),
  cost: z.strictObject({ input: nano, output: nano, cacheRead: nano, cacheWrite: nano }).nullable(),
  savedNano: nano.nullable(),
  latencyMs: z.number(),
  startedAtMs: z.number(),
  outcome: z.enum(['ok', 'error']),
  responseId: z.string().optional(),
});
const Entry = z.discriminatedUnion('is', [
  z.strictObject({ is: z.literal('begun'), of }),
  z.strictObject({ is: z.literal('settled'), of }),
  z.strictObject({ is: z.literal('made'), of, record }),
  z.strictObject({ is: z.literal('kept'), of, answer: z.string() }),
]);
type Entry = z.output<typeof Entry>;

type Line =
  | { readonly is: 'begun' | 'settled'; readonly of: CallsOf }
  | { readonly is: 'made'; readonly of: CallsOf; readonly record: CallRecord }
  | { readonly is: 'kept'; readonly of: CallsOf; readonly answer: string };

/**
 * `begun`: a call whose reserve is stored begins; `made`: a call ended; `settled`: the one that had begun ended without an answer; `kept`: an answer
 * that is stored when the calls are booked.
 */
export function toLine(entry: Line): string {
  return `${JSON.stringify(entry)}\n`;
}

/** Returns undefined for a line that a crash has cut off. */
export function parseLine(line: string): Entry | undefined {
  try {
    return Entry.safeParse(parseJson(line)).data;
  } catch {
    return undefined;
  }
}
