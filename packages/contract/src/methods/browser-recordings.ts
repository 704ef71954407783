import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const agentId = () => AgentId.optional().describe('The agent whose browser it was; the default agent otherwise.');
const id = 'rec_019ad000-0000-7000-8000-000000000000';
const RecordingId = once(() =>
  z.string().regex(/^rec_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, 'expected the id of a recording'),
);

const Recording = once(() =>
  z
    .strictObject({
      recordingId: RecordingId(),
      agentId: AgentId,
      startedAt: EpochMs,
      lastAt: EpochMs.describe('Time of the last step.'),
      running: z.boolean().describe('Steps are still added.'),
      steps: z.int().min(1),
      failed: z.int().min(0).describe('Steps that failed.'),
      bytes: z.int().min(0),
      url: z.string().optional().describe('The last address.'),
    })
    .meta({ id: 'BrowserRecording' }),
);
export type BrowserRecording = z.output<ReturnType<typeof Recording>>;

const Step = once(() =>
  z
    .strictObject({
      step: z.int().min(1),
      at: EpochMs,
      tookMs: z.number().min(0),
      by: z.enum(['agent', 'caller', 'person']).describe('A turn of an agent, a caller of a method, or a person who had taken over.'),
      principalId: z.string(),
      traceId: z.string(),
      action: z.string().describe('`navigate`, `click`, `snapshot` and so on.'),
      detail: z.string().optional().describe('The element by its role and name, the address; never the text that was typed.'),
      tabId: z.string().optional(),
      url: z.string().optional().describe('Address of the tab after the step.'),
      title: z.string().optional(),
      ok: z.boolean(),
      error: z.string().optional(),
      picture: z.boolean().describe('Whether `browser.recordings.picture` has a picture of the page after the step.'),
    })
    .meta({ id: 'BrowserRecordedStep' }),
);
export type BrowserRecordedStep = z.output<ReturnType<typeof Step>>;

/** What was done in the browser of an agent, to be looked at afterwards. */
export const browserRecordings = {
  'browser.recordings.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists recordings of an agent’s browser, newest first: one for each time that it ran.',
    description: 'A token of scope `admin` sees all steps, others those that they or their turns caused.',
    params: () =>
      z.strictObject({
        agentId: agentId(),
        before: RecordingId().optional().describe('Only older ones than this.'),
        limit: z.int().min(1).max(100).default(20),
      }),
    result: () => z.strictObject({ recordings: z.array(Recording()), more: z.boolean() }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: {
          recordings: [
            {
              recordingId: id,
              agentId: 'default',
              startedAt: 1_764_460_800_000,
              lastAt: 1_764_460_860_000,
              running: false,
              steps: 12,
              failed: 1,
              bytes: 240_000,
              url: 'https://shop.example/',
            },
          ],
          more: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'browser.recordings.get': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the steps of a recording: who did what when, at which address, and whether it succeeded.',
    params: () => z.strictObject({ agentId: agentId(), recordingId: RecordingId() }),
    result: () =>
      z.strictObject({
        recordingId: RecordingId(),
        agentId: AgentId,
        running: z.boolean(),
        steps: z.array(Step()),
        gaps: z
          .array(
            z.strictObject({
              from: z.int().min(1).describe('Number of the first missing step.'),
              missing: z.int().min(1),
              reason: z.enum(['disk_full', 'failed']),
            }),
          )
          .describe('Steps that were done but could not be stored, those of other callers included.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { recordingId: id },
        result: {
          recordingId: id,
          agentId: 'default',
          running: false,
          steps: [
            {
              step: 1,
              at: 1_764_460_800_000,
              tookMs: 120,
              by: 'agent',
              principalId: 'token:owner',
              traceId: '00000000000000000000000000000000',
              action: 'click',
              detail: 'button "Buy"',
              tabId: 't1',
              url: 'https://shop.example/cart',
              title: 'Cart',
              ok: true,
              picture: true,
            },
          ],
          gaps: [{ from: 2, missing: 3, reason: 'disk_full' }],
        },
      },
    ],
    since: '0.1.0',
  }),
  'browser.recordings.picture': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the picture of the page after a step, at most 800 pixels wide and high; typed secrets are covered.',
    params: () => z.strictObject({ agentId: agentId(), recordingId: RecordingId(), step: z.int().min(1) }),
    result: () => z.strictObject({ jpeg: z.string().describe('As base64.') }),
    errors: ['not_found'],
    examples: [{ params: { recordingId: id, step: 1 }, result: { jpeg: '/9j/' } }],
    since: '0.1.0',
  }),
  'browser.recordings.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes a recording, or all of an agent’s browser.',
    params: () => z.strictObject({ agentId: agentId(), recordingId: RecordingId().optional().describe('All when absent.') }),
    result: () => z.strictObject({ deleted: z.int().min(0) }),
    errors: ['not_found'],
    examples: [{ params: { recordingId: id }, result: { deleted: 1 } }],
    since: '0.1.0',
  }),
};
