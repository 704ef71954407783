import { AppError } from '../../../kernel/app-error.ts';
import { ownerOf } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { DocumentsApi } from '../../environment/documents/api.ts';
import type { MemoryApi, MemoryQuery } from '../memory/api.ts';
import { type KnowledgeSource, knowledgeOwner, placeOf } from './api.ts';
import { createIndexer, type IndexerDeps } from './indexer.ts';
import { withoutHead } from './passages.ts';
import type { FetchPage } from './site.ts';
import { listFailures, listSourceSums, locatePassages, readKnowledgeFile } from './store.ts';
import { KnowledgeSync, type Wanted } from './sync.ts';
import { createKnowledgeTool } from './tool.ts';

export interface KnowledgeDeps extends Pick<Core, 'db' | 'bus' | 'clock' | 'log'> {
  readonly agents: AgentsApi;
  readonly documents: Pick<DocumentsApi, 'extract' | 'maxFileBytes'>;
  readonly fetchPage: FetchPage;
  readonly homeDir: string;
  readonly putFile: IndexerDeps['putFile'];
  readonly memory: Pick<MemoryApi, 'search'>;
  readonly stored: (owner: string) => void;
  /** Whether nothing is indexed, because earlier starts crashed: a document may be the reason. */
  readonly isPaused: boolean;
}

export interface Passage {
  readonly fileId: string;
  readonly source: string;
  readonly path: string;
  readonly part: number;
  readonly label: string;
  readonly text: string;
  readonly score: number;
  readonly trusted: boolean;
}

/** What the tool and the methods use. */
export interface KnowledgeReader {
  find(
    agent: Agent,
    query: {
      readonly text: string;
      readonly source: string | undefined;
      readonly limit: number;
    } & Pick<MemoryQuery, 'bookedOn' | 'bookedConversation' | 'part' | 'signal'>,
  ): Promise<readonly Passage[]>;
  read(fileId: string, first: number, count: number): Promise<ReadPart | undefined>;
}

export interface ReadPart {
  readonly agentId: string;
  readonly fileId: string;
  readonly source: string;
  readonly path: string;
  readonly trusted: boolean;
  readonly sizeBytes: number;
  readonly indexedAtMs: number;
  readonly partCount: number;
  readonly parts: readonly { readonly part: number; readonly label: string; readonly text: string }[];
}

export type KnowledgeMethods = HandlersOf<`knowledge.${'list' | 'search' | 'read' | 'refresh'}`>;

export interface Knowledge extends AsyncDisposable {
  readonly methods: KnowledgeMethods;
  readonly tools: () => readonly Tool[];
  /** Called when an agent was created, configured, suspended, resumed or deleted. */
  readonly agentChanged: () => void;
}

/** The daemon answers before folders are read. */
const afterStartMs = 3_000;
/** Without sources only rows of removed ones are looked for, while the storage still needs no thread for reading. */
const emptyStartMs = 500;
/** Passages are asked for beyond the limit, because some may be of a source that was just taken away. */
const spare = 10;
/** Relevance below which a passage answers nothing; unrelated text scores near 0. */
const minScore = 0.15;
const maxListedFailures = 20;

/** Folders and sites from which agents answer. */
export function createKnowledge(deps: KnowledgeDeps): Knowledge {
  const { db, clock, log, agents, memory } = deps;
  const sourcesOf = (list: readonly Agent[]): Wanted[] =>
    list.flatMap((agent) => agent.config.knowledge.sources.map((source) => ({ agentId: agent.id, source })));
  const sync = new KnowledgeSync({
    db,
    clock,
    log,
    indexer: createIndexer(deps),
    wanted: () => (deps.isPaused ? [] : sourcesOf(agents.list().filter(({ suspended }) => !suspended))),
    kept: () => sourcesOf(agents.list()),
  });
  const hasSources = sourcesOf(agents.list()).length > 0;
  const cancelFirst = clock.after(hasSources ? afterStartMs : emptyStartMs, () => sync.wake());

  /** The source of an indexed file, if its agent still has it at the same place. */
  function current(agentId: string, name: string, place: string): KnowledgeSource | undefined {
    return agents.find(agentId)?.config.knowledge.sources.find((source) => source.name === name && placeOf(source) === place);
  }

  const reader: KnowledgeReader = {
    async find(agent, { text, source, limit, ...booked }) {
      if (agent.config.knowledge.sources.length === 0) return [];
      const found = await memory.search({
        text,
        agentId: knowledgeOwner(agent.id),
        principalId: null,
        ...booked,
        limit: Math.min(100, limit + spare),
        minScore,
        ...(source !== undefined && { tags: [source] }),
      });
      const located = await db.read(locatePassages, { ids: found.map(({ entry }) => entry.id) });
      const at = new Map(located.map((hit) => [hit.memoryId, hit]));
      return found
        .flatMap(({ entry, score }) => {
          const hit = at.get(entry.id);
          const from = hit === undefined ? undefined : current(agent.id, hit.source, hit.place);
          if (hit === undefined || from === undefined) return [];
          const { fileId, path, part, label } = hit;
          return [{ fileId, source: hit.source, path, part, label, text: withoutHead(entry.content), score, trusted: from.trusted }];
        })
        .slice(0, limit);
    },
    async read(fileId, first, count) {
      const found = await db.read(readKnowledgeFile, { fileId, first, last: first + count - 1 });
      const from = found === undefined ? undefined : current(found.file.agentId, found.file.source, found.file.place);
      if (found === undefined || from === undefined) return undefined;
      const { agentId, source, path, sizeBytes, indexedAtMs } = found.file;
      const byPart = Map.groupBy(found.passages, ({ part }) => part);
      return {
        agentId,
        fileId,
        source,
        path,
        trusted: from.trusted,
        sizeBytes,
        indexedAtMs,
        partCount: found.parts,
        parts: [...byPart].map(([part, passages]) => ({
          part,
          label: passages[0]?.label ?? '',
          text: passages.map(({ content }) => withoutHead(content)).join('\n\n'),
        })),
      };
    },
  };

  const methods: KnowledgeMethods = {
    async 'knowledge.list'({ agentId }, call) {
      const reached =
        agentId === undefined ? agents.list().filter(({ id }) => call.identity.agents?.includes(id) ?? true) : [agents.usable(agentId, call)];
      const sums = await db.read(listSourceSums, {});
      const sources = await Promise.all(
        sourcesOf(reached).map(async (wanted) => {
          const { name, folder, site, trusted } = wanted.source;
          const sum = sums.find((one) => one.agentId === wanted.agentId && one.source === name && one.place === placeOf(wanted.source));
          const { state, problem, checkedAtMs, nextCheckAtMs, more, unwatched } = sync.statusOf(wanted);
          const failed =
            sum === undefined || sum.failed === 0
              ? []
              : await db.read(listFailures, { agentId: wanted.agentId, source: name, limit: maxListedFailures });
          return {
            agentId: wanted.agentId,
            name,
            ...(folder !== undefined && { folder }),
            ...(site !== undefined && { site }),
            trusted,
            state,
            ...(problem !== undefined && { problem }),
            checkedAt: checkedAtMs ?? null,
            ...(nextCheckAtMs !== undefined && { nextCheckAt: nextCheckAtMs }),
            files: sum?.files ?? 0,
            passages: sum?.passages ?? 0,
            bytes: sum?.bytes ?? 0,
            more: more ?? false,
            unwatched: unwatched ?? 0,
            failedCount: sum?.failed ?? 0,
            failed: failed.map(({ path, problem: why }) => ({ path, problem: why ?? '' })),
          };
        }),
      );
      return { sources };
    },
    async 'knowledge.search'({ agentId, query, source, limit }, call) {
      const agent = agents.usable(call.agentCaller?.agentId ?? agentId, call);
      const passages = await reader.find(agent, { text: query, source, limit, bookedOn: ownerOf(call), signal: call.signal });
      return { passages: passages.map((passage) => ({ ...passage })) };
    },
    async 'knowledge.read'({ fileId, part, count }, call) {
      const found = await reader.read(fileId, part, count);
      // A file of another agent fails like an unknown one.
      if (found === undefined || (call.agentCaller !== undefined && call.agentCaller.agentId !== found.agentId)) throw unknownFile();
      try {
        agents.usable(found.agentId, call);
      } catch (error) {
        throw error instanceof AppError && error.code === 'not_found' ? unknownFile() : error;
      }
      const { indexedAtMs, ...rest } = found;
      return { ...rest, indexedAt: indexedAtMs, parts: [...rest.parts] };
    },
    async 'knowledge.refresh'({ agentId, source }, call) {
      const agent = agents.usable(agentId, call);
      if (source !== undefined && !agent.config.knowledge.sources.some(({ name }) => name === source))
        throw new AppError('not_found', `source: the agent ${agent.id} has no source ${source}`, { param: 'source' });
      await recordAudit(deps, call, {
        actionType: 'knowledge.refresh',
        classification: 'mutate',
        target: agent.id,
        metadata: source === undefined ? {} : { source },
      });
      sync.refresh(agent.id, source);
      return { started: true as const };
    },
  };

  const tool = [createKnowledgeTool(reader, agents)];
  const none: readonly Tool[] = [];
  return {
    methods,
    agentChanged: () => sync.wake(),
    // Without a source it would only cost tokens of every prompt.
    tools: () => (agents.list().some(({ config }) => config.knowledge.sources.length > 0) ? tool : none),
    async [Symbol.asyncDispose]() {
      cancelFirst();
      await sync[Symbol.asyncDispose]();
    },
  };
}

const unknownFile = (): AppError => new AppError('not_found', 'File of a knowledge source not found', { param: 'fileId' });
