import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

/** Content of an entry in bytes of UTF-8, and its tags. */
export const memoryLimits = { contentBytes: 32_768, tags: 32, tagCharacters: 64 } as const;

export const MemoryId = once(() => z.uuid());
export const MemoryType = once(() => z.enum(['working', 'episodic', 'semantic', 'procedural']).meta({ id: 'MemoryType' }));
export const MemoryTrust = once(() => z.enum(['system', 'learned', 'external']).meta({ id: 'MemoryTrust' }));
const Tag = once(() =>
  z
    .string()
    .min(1)
    .max(memoryLimits.tagCharacters)
    .refine((tag) => tag.isWellFormed(), 'expected well-formed Unicode'),
);
const Tags = once(() => z.array(Tag()).max(memoryLimits.tags));
const Score = once(() => z.number().min(0).max(1));

const brief = once(() => ({
  id: MemoryId(),
  content: z.string(),
  memoryType: MemoryType(),
  trustLevel: MemoryTrust(),
  tags: z.array(z.string()),
  agentId: AgentId,
  proofCount: z.int().min(0).describe('0: a raw entry; 1 and more: derived from that many sources.'),
  createdAt: EpochMs,
}));

/** A memory with all stored fields except its vector. */
export const MemoryEntry = once(() =>
  z
    .strictObject({
      ...brief(),
      principalId: z.string().describe('Its owner, or `*`: for every caller of the agent.'),
      taintLevel: z.enum(['clean', 'wrapped', 'raw']).describe('`raw`: the scan found text that looks like an instruction to the model.'),
      source: z.strictObject({
        who: z.string(),
        channel: z.string().optional(),
        sessionKey: PrintedSessionKey.optional(),
        conversationRef: ConversationRef.optional(),
      }),
      updatedAt: EpochMs.optional(),
      expiresAt: EpochMs.optional(),
      sourceIds: z.array(MemoryId()).optional().describe('Memories that a derived one cites; some may be gone.'),
      confidence: Score().optional(),
      consolidatedAt: EpochMs.optional().describe('When a derived memory absorbed it.'),
      pinned: z.boolean(),
    })
    .meta({ id: 'MemoryEntry' }),
);
export type MemoryEntry = z.output<ReturnType<typeof MemoryEntry>>;

/** One result of a search, with the reasons for its rank. */
export const MemoryHit = once(() =>
  z
    .strictObject({
      ...brief(),
      score: Score().describe(
        'Relevance, 0 to 1, from shared terms and calibrated similarity: unrelated text scores near 0 with every embedder. Results are ordered by the fused ranks of both lanes.',
      ),
      explain: z.strictObject({
        textRank: z.int().min(1).optional().describe('Rank in the search by terms; absent when no term matched.'),
        vectorRank: z.int().min(1).optional().describe('Rank in the search by meaning.'),
        vectorSimilarity: z.number().optional().describe('Cosine with the query, -1 to 1.'),
      }),
    })
    .meta({ id: 'MemoryHit' }),
);
export type MemoryHit = z.output<ReturnType<typeof MemoryHit>>;

/** Counts over the entries that the caller may see. */
export const MemoryStats = once(() =>
  z
    .strictObject({
      totalEntries: z.int().min(0),
      byType: z.partialRecord(MemoryType(), z.int().min(0)),
      byTrustLevel: z.partialRecord(MemoryTrust(), z.int().min(0)),
      byAgent: z.record(AgentId, z.int().min(0)),
      totalSessions: z.int().min(0).describe('Conversations from which entries came.'),
      embeddedEntries: z.int().min(0).describe('Entries with a vector of the current embedder.'),
      dbSizeBytes: z.int().min(0).describe('Size of the whole database.'),
      oldestCreatedAt: EpochMs.nullable(),
      embeddingProvider: z.string().optional().describe('`provider/model`; absent when none is configured, so that only terms are searched.'),
      embeddingCacheHitRate: z.number().min(0).max(1).nullable().optional().describe('Null before the first query.'),
    })
    .meta({ id: 'MemoryStats' }),
);
export type MemoryStats = z.output<ReturnType<typeof MemoryStats>>;

const agentFilter = once(() => ({ agentId: AgentId.optional().describe('Every agent that the caller may reach when absent.') }));
const entryExample = {
  id: '019a0000-0000-7000-8000-000000000001',
  content: 'The backup runs at four in the morning.',
  memoryType: 'semantic' as const,
  trustLevel: 'learned' as const,
  tags: ['operator-stored'],
  agentId: 'default',
  proofCount: 0,
  createdAt: 1790000000000,
};
const wholeExample = { ...entryExample, principalId: '*', taintLevel: 'clean' as const, source: { who: 'operator', channel: 'rpc' }, pinned: false };
const statsExample = {
  totalEntries: 1,
  byType: { semantic: 1 },
  byTrustLevel: { learned: 1 },
  byAgent: { default: 1 },
  totalSessions: 0,
  embeddedEntries: 1,
  dbSizeBytes: 4096,
  oldestCreatedAt: 1790000000000,
  embeddingProvider: 'hashing/hashing-384',
  embeddingCacheHitRate: 0.5,
};
const visibility = 'A plain `rpc` token sees its own entries and those for everybody, `admin` and `*` see all. Expired entries are never shown.';

export const memory = {
  'memory.search': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Searches memories of one agent by terms and by meaning, best first.',
    description: `${visibility} Only terms are searched when no embedder is configured, or when it fails or takes longer than 1.5 seconds. A stored entry is found by its terms at once; its vector is computed in the background.`,
    params: () =>
      z.strictObject({
        query: z.string().min(1).max(32_768),
        agentId: AgentId.optional(),
        limit: z.int().min(1).max(100).default(10),
        minScore: Score().default(0).describe('Minimum relevance of a result.'),
        types: z.array(MemoryType()).min(1).max(4).optional(),
        trust: z.array(MemoryTrust()).min(1).max(3).optional(),
        tags: Tags().default([]).describe('An entry must have all of them.'),
      }),
    result: () => z.strictObject({ results: z.array(MemoryHit()) }),
    errors: ['not_found'],
    examples: [
      {
        params: { query: 'when does the backup run?', limit: 5 },
        result: { results: [{ ...entryExample, score: 1, explain: { textRank: 1, vectorRank: 1, vectorSimilarity: 0.71 } }] },
      },
    ],
    since: '0.1.0',
  }),
  'memory.browse': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists memories by age, with filters.',
    description: `${visibility} Contents are cut at 500 characters; \`memory.inspect\` has the whole.`,
    params: () =>
      z.strictObject({
        ...agentFilter(),
        sort: z.enum(['newest', 'oldest']).default('newest'),
        memoryType: MemoryType().optional(),
        trustLevel: MemoryTrust().optional(),
        tags: Tags().default([]).describe('An entry must have all of them.'),
        ...pageParams({ defaultLimit: 20, maxLimit: 500 }),
      }),
    result: () => z.strictObject({ entries: z.array(z.strictObject(brief())), ...pageResult }),
    errors: ['not_found'],
    examples: [{ params: { sort: 'oldest' }, result: { entries: [entryExample], total: 1, offset: 0, limit: 20, hasMore: false } }],
    since: '0.1.0',
  }),
  'memory.inspect': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns one memory in full by its id, or statistics without one.',
    description: `${visibility} For an entry that the caller may not see, the answer is the same as for a missing one: without \`entry\`.`,
    params: () => z.strictObject({ id: MemoryId().optional() }),
    result: () => z.strictObject({ entry: MemoryEntry().optional(), stats: MemoryStats().optional() }),
    examples: [
      { params: { id: entryExample.id }, result: { entry: wholeExample } },
      { params: {}, result: { stats: statsExample } },
    ],
    since: '0.1.0',
  }),
  'memory.stats': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Counts memories by type, trust and agent, and returns how they are embedded.',
    description: visibility,
    params: () => z.strictObject({ ...agentFilter() }),
    result: () => MemoryStats(),
    errors: ['not_found'],
    examples: [{ params: {}, result: statsExample }],
    since: '0.1.0',
  }),
  'memory.embeddingCache': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the state of the embedding cache, of the embedder and of the entries pending a vector.',
    description:
      'The cache stores vectors of queries by the hash of their text; `l1` is in memory, `l2` in the database for seven days after the last use.',
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        enabled: z.boolean().describe('False when no embedder is configured.'),
        l1: z
          .strictObject({
            entries: z.int().min(0),
            maxEntries: z.int().min(1),
            hits: z.int().min(0),
            misses: z.int().min(0),
            hitRate: z.number().min(0).max(1).nullable(),
          })
          .optional(),
        l2: z
          .strictObject({ entries: z.int().min(0), maxEntries: z.int().min(1) })
          .nullable()
          .optional(),
        provider: z.string().optional(),
        vecAvailable: z.boolean().describe('True when searches by meaning are possible.'),
        circuitBreaker: z.strictObject({ state: z.enum(['closed', 'open', 'halfOpen']) }),
        pendingEntries: z.int().min(0).optional().describe('For `admin`: entries of all agents without a vector of the current embedder.'),
      }),
    examples: [
      {
        params: {},
        result: {
          enabled: true,
          l1: { entries: 1, maxEntries: 2000, hits: 1, misses: 1, hitRate: 0.5 },
          l2: { entries: 1, maxEntries: 5000 },
          provider: 'hashing/hashing-384',
          vecAvailable: true,
          circuitBreaker: { state: 'closed' },
          pendingEntries: 0,
        },
      },
    ],
    since: '0.1.0',
  }),
  'memory.store': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Stores a memory for every caller of an agent.',
    description: `At most ${memoryLimits.contentBytes} bytes of content. It is scanned first: text that tries to instruct the model is stored at trust \`external\` with the tag \`security-tainted\`; destructive commands are refused (\`denied\`). The tag \`operator-stored\` is added.`,
    params: () =>
      z.strictObject({
        content: z.string().min(1),
        agentId: AgentId.optional(),
        memoryType: MemoryType().default('semantic'),
        trustLevel: MemoryTrust().exclude(['system']).default('learned'),
        tags: Tags()
          .max(memoryLimits.tags - 2)
          .default([]),
        expiresAt: EpochMs.optional().describe('In the future.'),
        pinned: z.boolean().default(false),
      }),
    result: () =>
      z.strictObject({
        stored: z.literal(true),
        id: MemoryId(),
        trustLevel: MemoryTrust(),
        tainted: z.boolean().describe('True when the scan lowered its trust.'),
      }),
    errors: ['not_found', 'denied'],
    examples: [
      {
        params: { content: entryExample.content },
        result: { stored: true, id: entryExample.id, trustLevel: 'learned', tainted: false },
      },
    ],
    since: '0.1.0',
  }),
  'memory.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes memories by their ids; there is no undo.',
    description: 'Derived memories that cite one stay and cite it no longer. `failed` counts ids of missing or inaccessible entries.',
    params: () => z.strictObject({ ids: z.array(MemoryId()).min(1).max(500) }),
    result: () => z.strictObject({ deleted: z.int().min(0), failed: z.int().min(0), total: z.int().min(1) }),
    examples: [{ params: { ids: [entryExample.id] }, result: { deleted: 1, failed: 0, total: 1 } }],
    since: '0.1.0',
  }),
  'memory.flush': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes every memory of one agent, or of all agents within reach; there is no undo.',
    description: 'Pinned entries and those of trust `system` are deleted as well. Vectors of past queries are forgotten too.',
    params: () => z.strictObject({ ...agentFilter() }),
    result: () =>
      z.strictObject({
        flushed: z.literal(true),
        entriesRemoved: z.int().min(0),
        scope: z.strictObject({ tenantId: z.string(), agentId: AgentId.nullable() }),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: { flushed: true, entriesRemoved: 1, scope: { tenantId: 'default', agentId: 'default' } },
      },
    ],
    since: '0.1.0',
  }),
  'memory.export': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns whole memories page by page, oldest first.',
    description:
      'Entries keep their positions while others are added; expired ones are omitted. A page holds at most a million characters and so may be shorter than its limit: `hasMore` says whether there is another, which begins where this one ended.',
    params: () => z.strictObject({ ...agentFilter(), ...pageParams({ defaultLimit: 1000, maxLimit: 1000 }) }),
    result: () =>
      z.strictObject({
        entries: z.array(MemoryEntry()),
        exportedAt: EpochMs,
        totalEntries: z.int().min(0),
        ...pageResult,
      }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: { entries: [wholeExample], exportedAt: 1790000000500, totalEntries: 1, total: 1, offset: 0, limit: 1000, hasMore: false },
      },
    ],
    since: '0.1.0',
  }),
};
