import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const fileId = 'kf_00000000000000000000000000000000';
const FileId = once(() => z.string().regex(/^kf_[0-9a-f]{32}$/, 'expected kf_ followed by 32 hexadecimal digits'));
const SourceName = once(() => z.string().min(1).max(32));

const place = once(() => ({
  source: SourceName(),
  path: z.string().describe('Below the folder, or the address of the page.'),
  trusted: z.boolean().describe('False: text from outside.'),
}));
const part = once(() => ({
  part: z.int().min(1).describe('Number of the page, sheet or section.'),
  label: z.string().describe('"Page 3", a heading; empty for the beginning of a text without headings.'),
  text: z.string(),
}));

const passageExample = {
  fileId,
  source: 'handbook',
  path: 'leave.pdf',
  part: 3,
  label: 'Page 3',
  text: 'Leave is requested two weeks before it begins.',
  trusted: true,
};

/** Folders and sites that agents answer from; they are configured as `agents.<id>.knowledge.sources`. */
export const knowledge = {
  'knowledge.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the folders and sites that agents answer from, and the state of their index.',
    description: 'Sources are configured as `agents.<id>.knowledge.sources`. `failed` names the first files without text, and why.',
    params: () => z.strictObject({ agentId: AgentId.optional().describe('All agents that the token may use when absent.') }),
    result: () =>
      z.strictObject({
        sources: z.array(
          z.strictObject({
            agentId: AgentId,
            name: SourceName(),
            folder: z.string().optional(),
            site: z.string().optional(),
            trusted: z.boolean(),
            state: z
              .enum(['waiting', 'indexing', 'ready', 'unavailable', 'failed'])
              .describe('`unavailable`: the folder or site is not there now; what was indexed stays.'),
            problem: z.string().optional(),
            checkedAt: EpochMs.nullable(),
            nextCheckAt: EpochMs.optional().describe('When it is compared again; a folder that changes, earlier.'),
            files: z.int().min(0),
            passages: z.int().min(0),
            bytes: z.int().min(0),
            more: z.boolean().describe('There are more files than `maxFiles`; the first ones by name are indexed.'),
            unwatched: z.int().min(0).describe('Folders whose changes are found only every `everyMinutes`: there are more than can be watched.'),
            failedCount: z.int().min(0),
            failed: z.array(z.strictObject({ path: z.string(), problem: z.string() })),
          }),
        ),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: {
          sources: [
            {
              agentId: 'default',
              name: 'handbook',
              folder: '/srv/handbook',
              trusted: true,
              state: 'ready',
              checkedAt: 1_790_000_000_000,
              files: 12,
              passages: 340,
              bytes: 2_400_000,
              more: false,
              unwatched: 0,
              failedCount: 0,
              failed: [],
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'knowledge.search': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Searches the folders and sites of an agent by terms and by meaning, best first.',
    params: () =>
      z.strictObject({
        agentId: AgentId.optional(),
        query: z.string().min(1).max(2000),
        source: SourceName().optional().describe('Only this source.'),
        limit: z.int().min(1).max(50).default(10),
      }),
    result: () => z.strictObject({ passages: z.array(z.strictObject({ fileId: FileId(), ...place(), ...part(), score: z.number() })) }),
    errors: ['not_found'],
    examples: [{ params: { query: 'When must leave be requested?' }, result: { passages: [{ ...passageExample, score: 0.8 }] } }],
    since: '0.1.0',
  }),
  'knowledge.read': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Reads pages or sections of an indexed file, as a citation names them.',
    params: () => z.strictObject({ fileId: FileId(), part: z.int().min(1).max(100_000).default(1), count: z.int().min(1).max(20).default(5) }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        fileId: FileId(),
        ...place(),
        sizeBytes: z.int().min(0),
        indexedAt: EpochMs,
        partCount: z.int().min(0).describe('Number of the last page or section.'),
        parts: z.array(z.strictObject(part())),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { fileId, part: 3, count: 1 },
        result: {
          agentId: 'default',
          fileId,
          source: passageExample.source,
          path: passageExample.path,
          trusted: true,
          sizeBytes: 120_000,
          indexedAt: 1_790_000_000_000,
          partCount: 9,
          parts: [{ part: 3, label: 'Page 3', text: passageExample.text }],
        },
      },
    ],
    since: '0.1.0',
  }),
  'knowledge.refresh': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Compares the folders and sites of an agent with their index now, instead of at the next change or interval.',
    params: () => z.strictObject({ agentId: AgentId, source: SourceName().optional().describe('All sources of the agent when absent.') }),
    result: () => z.strictObject({ started: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { agentId: 'default', source: 'handbook' }, result: { started: true } }],
    since: '0.1.0',
  }),
};
