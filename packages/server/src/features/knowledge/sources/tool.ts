import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { KnowledgeReader } from './sources.ts';

const Args = once(() =>
  z.strictObject({
    query: z.string().min(1).max(2000).optional().describe('What to look for.'),
    source: z.string().min(1).max(64).optional().describe('Only this source.'),
    file: z
      .string()
      .regex(/^kf_[0-9a-f]{32}$/)
      .optional()
      .describe('Instead of a query: a file of an earlier result, to read more of it.'),
    part: z.int().min(1).max(100_000).default(1).describe('First page or section to read of the file.'),
    limit: z.int().min(1).max(20).default(6),
  }),
);

/** Characters of a result: the loop cuts longer ones anywhere. */
const maxShown = 30_000;
const partsAtOnce = 3;

/** How an answer cites a place: the dashboard opens it at that page, other readers see the label. */
const citation = (path: string, label: string, fileId: string, part: number): string =>
  /^https?:/.test(path) ? `[${label === '' ? path : label}](${path})` : `[${path}${label === '' ? '' : `, ${label}`}](knowledge:${fileId}/${part})`;

/** `knowledge_search`: an agent finds and reads passages of the folders and sites that it was given. */
export function createKnowledgeTool(reader: KnowledgeReader, agents: Pick<AgentsApi, 'find'>): Tool<ReturnType<typeof Args>> {
  return {
    name: 'knowledge_search',
    description:
      'Searches the folders and sites that you were given, by terms and by meaning, and reads more of what it found. ' +
      'Answer from the passages, and cite each one that you use with the link in its first line.',
    get args() {
      return Args();
    },
    risk: 'read',
    effect: 'pure',
    timeoutMs: 20_000,
    describe: ({ query, file }) => (query === undefined ? `read ${file ?? 'a file'}` : `search knowledge: ${query}`),
    async run({ query, source, file, part, limit }, { agentId, principalId, conversationRef, call, signal }) {
      const agent = agents.find(agentId);
      if (agent === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`);
      if ((query === undefined) === (file === undefined)) throw new AppError('invalid_params', 'Expected either query or file', { param: 'query' });
      if (file !== undefined) {
        const read = await reader.read(file, part, partsAtOnce);
        if (read === undefined || read.agentId !== agentId) throw new AppError('not_found', 'File not found', { param: 'file' });
        const text = read.parts.map((one) => `${citation(read.path, one.label, file, one.part)}\n${one.text}`).join('\n\n');
        const next = part + partsAtOnce <= read.partCount ? `\n\n[continue with part ${part + partsAtOnce} of ${read.partCount}]` : '';
        return {
          content: `${text === '' ? '(no text)' : text.slice(0, maxShown).toWellFormed()}${next}`,
          outside: { source: `knowledge ${read.source}`, clean: read.trusted },
        };
      }
      const booked = { bookedOn: principalId, bookedConversation: conversationRef, part: call.agentCaller?.turn };
      const found = await reader.find(agent, { text: query ?? '', source, limit, ...booked, signal });
      if (found.length === 0) {
        const names = agent.config.knowledge.sources.map(({ name }) => name);
        return { content: names.length === 0 ? 'You were given no folders and no sites.' : `Nothing found in ${names.join(', ')}.` };
      }
      const blocks = found.map(
        ({ path, label, fileId, part: at, text }) => `${citation(path, label, fileId, at)} (file ${fileId}, part ${at})\n${text}`,
      );
      return {
        content: blocks.join('\n\n').slice(0, maxShown).toWellFormed(),
        outside: { source: `knowledge ${[...new Set(found.map((one) => one.source))].join(', ')}`, clean: found.every(({ trusted }) => trusted) },
      };
    },
  };
}
