import type { Agent } from 'node:http';
import * as z from 'zod';
import { bearer, http } from './http.ts';
import { askForCall } from './provider.ts';

/** The target of calls, and their caller. */
export interface Caller {
  readonly port: number;
  readonly token: string;
  readonly agent: Agent;
}

/** Passes a path to one input that reaches files; resolves with the whole answer, refusals too. */
export type PathRoute = (caller: Caller, path: string) => Promise<string>;

const agentId = 'default';
/** Content of all written files. */
export const planted = 'planted by a hostile path';
const skill = (name: string): string => `---\nname: ${name}\ndescription: Writes notes.\n---\n\nWrite notes.\n`;
const protocol = '2025-11-25';

async function send(caller: Caller, path: string, more: object = {}): Promise<string> {
  const { status, text } = await http({
    ...caller,
    path,
    headers: bearer(caller.token),
    timeoutMs: 30_000,
    ...more,
  });
  return `${status} ${text}`;
}

const rpc =
  (method: string, params: (path: string) => object): PathRoute =>
  (caller, path) =>
    send(caller, '/rpc', { body: { jsonrpc: '2.0', id: 1, method, params: params(path) } });

const Turn = z.object({ result: z.object({ response: z.string() }) });
let turns = 0;
/** A call that a model makes; the answer is its result. */
const tool =
  (name: string, args: (path: string) => object): PathRoute =>
  async (caller, path) => {
    const turn = rpc('agent.execute', (text) => ({ message: askForCall(name, args(text)), sessionKey: `path-${(turns += 1)}:proof` }));
    const answer = await turn(caller, path);
    return Turn.safeParse(JSON.parse(answer.slice(answer.indexOf('{')))).data?.result.response ?? answer;
  };

/** Unchanged when a request can carry it, and encoded otherwise. */
const inUrl = (path: string): string => (/^[\x21-\x7e]+$/.test(path) ? path : encodeURIComponent(path.toWellFormed()));

function resource(uri: (path: string) => string): PathRoute {
  return async (caller, path) => {
    const headers = { ...bearer(caller.token), accept: 'application/json, text/event-stream', 'mcp-protocol-version': protocol };
    const params = { protocolVersion: protocol, capabilities: {}, clientInfo: { name: 'proof', version: '1' } };
    const begun = await http({ ...caller, path: '/mcp', headers, body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } });
    const session = { ...headers, 'mcp-session-id': String(begun.headers['mcp-session-id']) };
    const asked = { jsonrpc: '2.0', id: 2, method: 'resources/read', params: { uri: uri(path) } };
    const { status, text } = await http({ ...caller, path: '/mcp', headers: session, body: asked });
    await http({ ...caller, path: '/mcp', method: 'DELETE', headers: session });
    return `${status} ${text}`;
  };
}

const patch = (...lines: readonly string[]): object => ({ patch: ['*** Begin Patch', ...lines, '*** End Patch'].join('\n') });

/** Every input of the interface that reaches files, by its name. */
export const pathRoutes: Readonly<Record<string, PathRoute>> = {
  'workspace.readFile': rpc('workspace.readFile', (filePath) => ({ agentId, filePath })),
  'workspace.readFile agentId': rpc('workspace.readFile', (path) => ({ agentId: path, filePath: 'secret.txt' })),
  'workspace.readBytes': rpc('workspace.readBytes', (filePath) => ({ agentId, filePath })),
  'workspace.writeFile': rpc('workspace.writeFile', (filePath) => ({ agentId, filePath, content: planted })),
  'workspace.deleteFile': rpc('workspace.deleteFile', (filePath) => ({ agentId, filePath })),
  'workspace.listDir': rpc('workspace.listDir', (subdir) => ({ agentId, subdir })),
  'workspace.listDir of a standard folder': rpc('workspace.listDir', (path) => ({ agentId, subdir: `documents/${path}` })),
  'workspace.resetFile': rpc('workspace.resetFile', (fileName) => ({ agentId, fileName })),
  'workspace.git.diff': rpc('workspace.git.diff', (filePath) => ({ agentId, filePath })),
  'workspace.git.restore': rpc('workspace.git.restore', (filePath) => ({ agentId, filePath })),
  'workspace.git.commit': rpc('workspace.git.commit', (path) => ({ agentId, paths: [path] })),
  'agents.create': rpc('agents.create', (path) => ({ agentId: path, config: {} })),
  'skills.create': rpc('skills.create', (name) => ({ name, content: skill(name) })),
  'skills.update': rpc('skills.update', (name) => ({ name, content: skill(name) })),
  'skills.delete': rpc('skills.delete', (name) => ({ name })),
  'skills.upload name': rpc('skills.upload', (name) => ({ name, files: [{ path: 'SKILL.md', content: skill(name) }] })),
  'skills.upload path': rpc('skills.upload', (path) => ({
    name: `planted-${(turns += 1)}`,
    files: [
      { path: 'SKILL.md', content: skill(`planted-${turns}`) },
      { path, content: planted },
    ],
    force: true,
  })),
  read: tool('read', (path) => ({ path })),
  write: tool('write', (path) => ({ path, content: planted })),
  edit: tool('edit', (path) => ({ path, oldText: 'canary', newText: planted })),
  'apply_patch adds': tool('apply_patch', (path) => patch(`*** Add File: ${path}`, `+${planted}`)),
  'apply_patch updates': tool('apply_patch', (path) => patch(`*** Update File: ${path}`, '@@', '-canary', `+${planted}`)),
  'apply_patch deletes': tool('apply_patch', (path) => patch(`*** Delete File: ${path}`)),
  'apply_patch moves': tool('apply_patch', (path) => patch('*** Update File: notes/a.txt', `*** Move to: ${path}`, '@@', '-inside', '+inside')),
  grep: tool('grep', (path) => ({ pattern: '.', path })),
  'grep glob': tool('grep', (glob) => ({ pattern: '.', glob })),
  find: tool('find', (path) => ({ pattern: '*', path })),
  'find pattern': tool('find', (pattern) => ({ pattern })),
  ls: tool('ls', (path) => ({ path })),
  exec: tool('exec', (cwd) => ({ argv: ['sh', '-c', 'cat secret.txt; ls -a | grep listed; echo effect > effect.txt'], cwd })),
  skill: tool('skill', (name) => ({ name })),
  'skill file': tool('skill', (file) => ({ name: 'notes', file })),
  'GET /media/:id': (caller, path) => send(caller, `/media/${inUrl(path)}`),
  'GET /media/:id, encoded': (caller, path) => send(caller, `/media/${encodeURIComponent(path.toWellFormed())}`),
  'GET /media/:id/meta': (caller, path) => send(caller, `/media/${encodeURIComponent(path.toWellFormed())}/meta`),
  'DELETE /media/:id': (caller, path) => send(caller, `/media/${encodeURIComponent(path.toWellFormed())}`, { method: 'DELETE' }),
  'POST /media fileName': (caller, path) =>
    send(caller, `/media?fileName=${encodeURIComponent(path.toWellFormed())}`, {
      body: planted,
      headers: { ...bearer(caller.token), 'content-type': 'text/plain' },
    }),
  'attachment of a turn': (caller, path) => send(caller, '/api/chat', { body: { message: 'Look', attachments: [{ mediaId: path }] } }),
  'file of a completion': (caller, path) =>
    send(caller, '/v1/chat/completions', {
      body: {
        model: 'local/test-model',
        messages: [{ role: 'user', content: [{ type: 'file', file: { filename: path, file_data: `file://${path}` } }] }],
      },
    }),
  'GET /assets/*file': (caller, path) => send(caller, `/assets/${inUrl(path)}`),
  'resource of MCP': resource((path) => `gatehouse://agents/default/workspace/${path}`),
  'resource of MCP, encoded': resource(
    (path) => `gatehouse://agents/default/workspace/${path.toWellFormed().split('/').map(encodeURIComponent).join('/')}`,
  ),
  'agent of a resource': resource((path) => `gatehouse://agents/${path}/workspace/secret.txt`),
};
