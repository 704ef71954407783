import type { Canaries, Scanner } from './canaries.ts';
import { sayTo, type Target } from './canary-transports.ts';
import { pause } from './daemon.ts';
import { bearer, http } from './http.ts';
import { askForCall } from './provider.ts';

/** The settings of tools, MCP servers and searches into which R27 puts secrets; `echo` answers with what it was sent. */
export function toolsConfig(canaries: Canaries, echo: string) {
  const printAndFail = 'process.stderr.write(Object.values(process.env).join()); process.exit(1)';
  return {
    webSearch: { provider: 'brave', baseUrl: `${echo}/search`, apiKey: canaries.make('the key of the search provider') },
    approvals: {
      rules: [
        { tools: ['write'], action: 'ask' },
        {
          tools: [
            'exec',
            'process',
            'terminal',
            'web_search',
            'read',
            'read_document',
            'sessions_spawn',
            'sessions_send',
            'subagents',
            'pipeline',
            'orchestrate',
          ],
          action: 'auto',
          tainted: true,
        },
      ],
    },
    mcp: {
      servers: {
        remote: {
          transport: 'http',
          url: `${echo}/mcp`,
          allowPrivate: true,
          headers: { authorization: `Bearer ${canaries.make('a header of an MCP server')}` },
        },
        program: {
          transport: 'stdio',
          command: 'node',
          args: ['-e', printAndFail],
          env: { SERVICE_KEY: canaries.make('the environment of an MCP server') },
        },
      },
    },
  };
}

/** Placeholder in a message where the model puts the key itself. */
export const keyHere = '<the key>';

/** The agent's part of that configuration. */
export const agentWithTools = {
  name: 'Gate',
  model: 'local/test-model',
  maxConcurrentRuns: 1000,
  tools: { profile: 'full', discovery: { mode: 'never' } },
  background: { afterMs: 1000 },
};

/** Files that rightly hold a secret that was written into them. */
export const toolFiles: readonly string[] = [
  'workspaces/default/documents/key.txt',
  'workspaces/default/TOOLS.md',
  'workspaces/default/skills/keys/SKILL.md',
];

/** Takes the keys through every tool and every method of tools, and scans all answers. */
export async function useTools(target: Target, canaries: Canaries, key: string, scan: Scanner['scan'], unprovoked: string[]): Promise<void> {
  const say = sayTo(target, scan);
  let turns = 0;
  const use = (tool: string, args: object, options = {}): Promise<string> =>
    say('agent.execute', { message: askForCall(tool, args), sessionKey: `tools-${(turns += 1)}:desk` }, options);
  const print = ['sh', '-c', 'env; cat /workspace/notes.txt'];

  // Methods that receive a secret.
  await say('workspace.init', { agentId: 'default' });
  await say('workspace.writeFile', { agentId: 'default', filePath: 'documents/key.txt', content: `${key}\n` });
  await say('workspace.writeFile', { agentId: 'default', filePath: 'TOOLS.md', content: `The key of the search is ${key}\n` });
  await say('workspace.git.commit', { agentId: 'default', paths: ['documents/key.txt'] });
  await say('skills.create', { name: 'keys', content: `---\nname: keys\ndescription: Holds keys.\n---\n\nThe key is ${key}.\n`, force: true });
  const header = canaries.make('a header that mcp.connect was given');
  const remote = { name: 'given', transport: 'http', url: 'http://127.0.0.1:9/mcp', headers: { authorization: header } };
  for (const method of ['mcp.connect', 'mcp.test', 'mcp.reconnect']) await say(method, remote);
  for (const name of ['remote', 'program']) {
    await say('mcp.test', { name });
    await say('mcp.connect', { name });
    await say('mcp.status', { name });
  }

  // Tools that find one.
  const read = await use('exec', { argv: print });
  if (!/The key is/.test(read) && !read.includes('Commands run in a jail or not at all'))
    unprovoked.push(`no command has read the keys: ${read.slice(0, 300)}`);
  await use('exec', { argv: print, background: true });
  await use('exec', { argv: ['sh', '-c', `${print[2]}; sleep 2; ${print[2]}`] });
  const searched = await use('web_search', { query: 'keys' });
  if (!searched.includes('status 500')) unprovoked.push(`no search was made: ${searched.slice(0, 300)}`);

  // A pending call with a secret in its arguments, denied with one in the reason.
  const leave = new AbortController();
  const waiting = use('write', { path: 'stolen.txt', content: `The key is ${keyHere}` }, { signal: leave.signal });
  let pending = '';
  for (const until = performance.now() + 5_000; !pending.includes('stolen.txt') && performance.now() < until; await pause(50))
    pending = await say('admin.approval.pending', {});
  if (!pending.includes('stolen.txt')) unprovoked.push('nothing waits to be approved');
  leave.abort();
  await waiting;
  await say('obs.audit.query', {});
  await say('admin.approval.resolveAll', { approved: false, reason: `Not ${key}` });

  // Answers to MCP clients.
  const headers = { ...bearer(target.token), accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'proof', version: '1' } };
  const begun = await http({ ...target, path: '/mcp', headers, body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } });
  const session = { ...headers, 'mcp-session-id': String(begun.headers['mcp-session-id']) };
  const ask = async (method: string, asked: object): Promise<void> => {
    const { text } = await http({
      ...target,
      path: '/mcp',
      headers: session,
      body: { jsonrpc: '2.0', id: 2, method, params: asked },
      timeoutMs: 30_000,
    });
    scan(`answer of /mcp to ${method}`, text);
    if (!text.includes('"result":')) unprovoked.push(`/mcp refused ${method}: ${text.slice(0, 200)}`);
  };
  await ask('tools/list', {});
  await ask('resources/list', {});
  await ask('tools/call', { name: 'agent_default', arguments: { message: askForCall('read', { path: 'notes.txt' }) } });
}
