import { isUtf8 } from 'node:buffer';
import { extname } from 'node:path';
import { AgentId, templateNames } from '@gatehouse/contract';
import type { Resource } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Agent, AgentsApi } from '../../features/agents/agents/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Identity } from '../../kernel/call-context.ts';
import { parseJson } from '../../kernel/json.ts';
import { listFolderInside, readFileInside } from '../../kernel/safe-path.ts';
import { agentsOf } from './agent-tools.ts';
import type { McpPage, McpResources } from './offer.ts';

const pageSize = 100;
/** Entries examined for one page, and the maximum examined in one folder. */
const maxExamined = 2_000;
const maxPerFolder = 1_000;
const maxBytes = 1_048_576;

const types: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.html': 'text/html',
  '.css': 'text/css',
  '.csv': 'text/csv',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.xml': 'application/xml',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
};

const setUp = new Set<string>(templateNames.map((name) => name.toLowerCase()));

/**
 * True for an agent's work. What defines the agent is not offered: the prompt files and skills, `USER.md` among them, are its
 * owner's text, and permission to use an agent does not include reading them; hidden names belong to programs.
 */
function isOffered(names: readonly string[]): boolean {
  const first = (names[0] ?? '').toLowerCase();
  return first !== 'skills' && !(names.length === 1 && setUp.has(first)) && names.every((name) => !name.startsWith('.'));
}

function uriOf(agentId: string, names: readonly string[]): string {
  return `gatehouse://agents/${agentId}/workspace/${names.map(encodeURIComponent).join('/')}`;
}

/** Returns undefined for a URI that `uriOf` never produces. */
function parseUri(uri: string): { readonly agentId: string; readonly names: readonly string[] } | undefined {
  const [, agentId, path] = /^gatehouse:\/\/agents\/([^/]+)\/workspace\/(.+)$/.exec(uri) ?? [];
  if (agentId === undefined || path === undefined) return undefined;
  try {
    const names = path.split('/').map(decodeURIComponent);
    return names.some((name) => name.includes('/')) ? undefined : { agentId, names };
  } catch {
    return undefined;
  }
}

/** The last position of a page. */
const Cursor = z.strictObject({ agentId: AgentId, names: z.array(z.string().min(1)) });
type Cursor = z.output<typeof Cursor>;

function readCursor(text: string): Cursor {
  try {
    return Cursor.parse(parseJson(Buffer.from(text, 'base64url').toString(), { maxDepth: 4 }));
  } catch {
    throw new AppError('invalid_params', 'cursor: expected a cursor of an earlier page', { param: 'cursor' });
  }
}

/** Yields files below a folder in the order of their names, after `after`; folders too, as positions where a page may end. */
async function* walk(root: string, folder: readonly string[], after: readonly string[]): AsyncGenerator<{ names: string[]; size?: number }> {
  const { entries } = await listFolderInside(root, folder.length === 0 ? '.' : folder.join('/'), maxPerFolder).catch(emptyWhereMissing);
  const [from, ...below] = after;
  for (const { name, kind, size } of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const names = [...folder, name];
    if ((from !== undefined && name < from) || !isOffered(names)) continue;
    if (kind === 'directory') {
      if (name !== from) yield { names };
      yield* walk(root, names, name === from ? below : []);
    } else if (name !== from) yield { names, size };
  }
}

function emptyWhereMissing(error: unknown): Awaited<ReturnType<typeof listFolderInside>> {
  if (error instanceof AppError && error.code === 'not_found') return { entries: [], more: false };
  throw error;
}

function resourceOf({ id, config }: Agent, names: readonly string[], size: number): Resource {
  const path = names.join('/');
  const mimeType = types[extname(path).toLowerCase()];
  return {
    uri: uriOf(id, names),
    name: `${id}/${path}`,
    title: `${path} (${config.name})`,
    size,
    ...(mimeType !== undefined && { mimeType }),
  };
}

/** Creates the resources `gatehouse://agents/<id>/workspace/<path>` of the files in agents' workspaces: listed in pages, read up to 1 MiB. */
export function createWorkspaceResources(agents: AgentsApi): McpResources {
  const sorted = (identity: Identity) => agentsOf(agents, identity).toSorted((a, b) => (a.id < b.id ? -1 : 1));

  async function list(cursor: string | undefined, identity: Identity): Promise<McpPage<Resource>> {
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const items: Resource[] = [];
    let examined = 0;
    for (const agent of sorted(identity)) {
      if (after !== undefined && agent.id < after.agentId) continue;
      for await (const { names, size } of walk(agent.workspaceDir, [], agent.id === after?.agentId ? after.names : [])) {
        examined += 1;
        if (size !== undefined) items.push(resourceOf(agent, names, size));
        if (items.length < pageSize && examined < maxExamined) continue;
        const place: Cursor = { agentId: agent.id, names };
        return { items, nextCursor: Buffer.from(JSON.stringify(place)).toString('base64url') };
      }
    }
    return { items };
  }

  return {
    list,
    templates: (identity) =>
      sorted(identity).map(({ id, config }) => ({
        uriTemplate: `gatehouse://agents/${id}/workspace/{+path}`,
        name: `${id}/workspace`,
        title: `Workspace of ${config.name}`,
        description: `A file in the workspace of the agent ${config.name} (${id}), by its path.`,
      })),
    async read(uri, identity) {
      const found = parseUri(uri);
      const agent = found === undefined ? undefined : agentsOf(agents, identity).find(({ id }) => id === found.agentId);
      if (found === undefined || agent === undefined || !isOffered(found.names)) return undefined;
      const path = found.names.join('/');
      const mimeType = types[extname(path).toLowerCase()];
      try {
        const bytes = await readFileInside(agent.workspaceDir, path, { maxBytes });
        if (isUtf8(bytes) && !bytes.includes(0)) return [{ uri, mimeType: mimeType ?? 'text/plain', text: bytes.toString() }];
        return [{ uri, mimeType: mimeType ?? 'application/octet-stream', blob: bytes.toString('base64') }];
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return undefined;
        throw error;
      }
    },
  };
}
