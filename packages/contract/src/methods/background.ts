import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef } from '../shared/session.ts';
import { RootRunId } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const id = 'cmd_00000000-0000-7000-8000-000000000001';

/** A command of `exec`, or a tool call, that runs while no turn waits for it. */
export const BackgroundItem = once(() =>
  z
    .strictObject({
      id: z.string().min(1).max(64),
      kind: z
        .enum(['command', 'call', 'terminal'])
        .describe(
          '`command`: started by `exec` with `background`; `call`: a tool call that outlasted its turn; `terminal`: a session of the tool `terminal`.',
        ),
      agentId: AgentId,
      conversationRef: ConversationRef,
      rootRunId: RootRunId().describe('`run.kill` and `lease.revoke` of this root stop it.'),
      runId: z.string().optional().describe('The sub-agent run that started it.'),
      description: z.string().describe('The command line, or the tool and its task.'),
      startedAt: EpochMs,
    })
    .meta({ id: 'BackgroundItem' }),
);
export type BackgroundItem = z.output<ReturnType<typeof BackgroundItem>>;

const color = z.union([z.int().min(0).max(255), z.string()]).optional();

/** Text of one style on the screen of a terminal session. */
export const ScreenRun = once(() =>
  z
    .strictObject({
      text: z.string(),
      fg: color.describe('Color of the text: its number in the palette of 256, or `#rrggbb`.'),
      bg: color.describe('Color behind the text.'),
      bold: z.literal(true).optional(),
      dim: z.literal(true).optional(),
      italic: z.literal(true).optional(),
      underline: z.literal(true).optional(),
      inverse: z.literal(true).optional(),
      hidden: z.literal(true).optional(),
    })
    .meta({ id: 'ScreenRun' }),
);
export type ScreenRun = z.output<ReturnType<typeof ScreenRun>>;

const terminalId = 'term_00000000-0000-7000-8000-000000000001';

export const background = {
  'background.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists commands and tool calls in the background, newest first: those of the caller, of everybody for an admin.',
    params: () => z.strictObject({ agentId: AgentId.optional() }),
    result: () => z.strictObject({ items: z.array(BackgroundItem()), total: z.int().min(0).describe('Length of `items`.') }),
    examples: [{ params: {}, result: { items: [], total: 0 } }],
    since: '0.1.0',
  }),
  'background.stop': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Stops a background command with all its processes, or a background tool call.',
    params: () => z.strictObject({ id: z.string().min(1).max(64) }),
    result: () => z.strictObject({ id: z.string(), stopped: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { id }, result: { id, stopped: true } }],
    since: '0.1.0',
  }),
  'background.screen': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the screen of a running terminal session: text without control characters, stored secrets hidden.',
    params: () =>
      z.strictObject({
        id: z.string().min(1).max(64),
        after: z.int().min(0).optional().describe('Version that the caller has: without a newer one, the answer has no lines.'),
        waitMs: z.int().min(0).max(10_000).default(0).describe('With `after`: how long to wait for a newer version, in milliseconds.'),
      }),
    result: () =>
      z.strictObject({
        id: z.string(),
        version: z.int().min(0).describe('Grows with every change of the screen.'),
        cols: z.int().min(1),
        rows: z.int().min(1),
        cursor: z
          .strictObject({ x: z.int().min(0), y: z.int().min(0) })
          .nullable()
          .describe('Null when unchanged.'),
        lines: z.array(z.array(ScreenRun())).optional().describe('Rows from the top; absent when unchanged.'),
      }),
    errors: ['not_found', 'unavailable'],
    examples: [
      {
        params: { id: terminalId },
        result: { id: terminalId, version: 3, cols: 80, rows: 24, cursor: { x: 4, y: 0 }, lines: [[{ text: '>>> ', bold: true }]] },
      },
    ],
    since: '0.1.0',
  }),
  'background.type': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Types into a terminal session: the program runs what is typed, without an approval.',
    params: () =>
      z.strictObject({
        id: z.string().min(1).max(64),
        text: z.string().max(4096).optional().describe('Typed before the keys, as it is.'),
        keys: z.array(z.string().min(1).max(20)).max(64).optional().describe('Names as for the tool `terminal`, e.g. `enter` or `ctrl+c`.'),
      }),
    result: () => z.strictObject({ id: z.string(), typed: z.literal(true) }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'unavailable'],
    examples: [{ params: { id: terminalId, text: 'print(1)', keys: ['enter'] }, result: { id: terminalId, typed: true } }],
    since: '0.1.0',
  }),
};
