import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { expect, test } from 'vitest';
import * as client from './index.ts';
import { answer, type SeenRequest, startGateway, streamEvents } from './testing/gateway.ts';

const token = 'a-token-of-more-than-thirty-two-characters';
const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'agent/default',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello yourself' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
};

const results: Record<string, object> = {
  'system.ping': { result: { pong: true, ts: 42 } },
  'agent.execute': { result: { response: 'A thing in between.' } },
  'agents.list': { result: { agents: ['default'] } },
  'session.list': {
    error: {
      code: -32602,
      message: 'Invalid params',
      data: { code: 'invalid_params', issues: [{ path: 'limit', message: 'expected at most 200' }] },
    },
  },
  'agents.get': { error: { code: -32001, message: 'No agent nobody.', data: { code: 'not_found' } } },
};

function rpcReply(text: string): unknown {
  const message: { id: number; method: string } | { id: number; method: string }[] = JSON.parse(text);
  const reply = ({ id, method }: { id: number; method: string }) => ({ jsonrpc: '2.0', id, ...results[method] });
  return Array.isArray(message) ? message.map(reply) : reply(message);
}

const turn = {
  response: 'A house over a gate.',
  tokensUsed: { input: 5, output: 6, total: 11 },
  finishReason: 'stop',
  sessionKey: 'ada:desk',
  conversationRef: 'cv_0000000000000000000000000000000000000000000',
  traceId: 't1',
};
const mediaFile = { mediaId: 'm1.md', contentType: 'text/markdown', size: 7, fileName: 'notes.md', savedAt: 1 };

const routes: Record<string, (seen: SeenRequest) => unknown> = {
  '/rpc': ({ body }) => rpcReply(body),
  '/api/chat': ({ body }) => ({ ...turn, response: JSON.parse(body).attachments === undefined ? 'House.' : 'Only a heading.' }),
  '/api/chat/stream': ({ response }) =>
    void streamEvents(response, `id: 1\nevent: token\ndata: {"delta":"A house"}\n\nid: 2\nevent: done\ndata: ${JSON.stringify(turn)}\n\n`),
  '/media?fileName=notes.md': () => mediaFile,
  '/media/m1.md/meta': () => mediaFile,
  '/media/m1.md': ({ response }) => void response.end('# Notes'),
  '/api/events?kinds=agent%3Ahot_added': ({ response }) =>
    void streamEvents(response, 'retry: 3000\n\nid: 12\nevent: agent:hot_added\ndata: {"agentId":"scout","timestamp":1}\n\n'),
  '/v1/chat/completions': serveCompletion,
};

function serveCompletion({ body, response }: SeenRequest): unknown {
  if (JSON.parse(body).stream !== true) return answer(response, 200, completion);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (fields: object) =>
    response.write(`data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`);
  chunk({ choices: [{ index: 0, delta: { content: 'Streamed' }, finish_reason: null }] });
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  chunk({ choices: [], usage: completion.usage });
  return void response.end('data: [DONE]\n\n');
}

test('the examples of README.md work', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const source = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]).join('\n');
  expect(source).toContain('createClient');
  await using gateway = await startGateway({
    http: (seen) => routes[seen.path]?.(seen),
    socket: ({ socket }) => socket.on('message', (data: Buffer) => socket.send(JSON.stringify(rpcReply(data.toString())))),
  });
  const lines: string[] = [];
  await runModule(source, { ...client, url: gateway.url, token, log: (line: string) => lines.push(line) });
  expect(lines).toEqual([
    'server time 42',
    'A thing in between.',
    'pong true',
    'agents default',
    'A house',
    'stop, 11 tokens',
    'House.',
    'Only a heading.',
    'text/markdown, 7 bytes',
    '# Notes',
    'new agent scout, event 12',
    'Hello yourself',
    'Streamed',
    '[stop]',
    '3 tokens',
    'limit: expected at most 200',
    'no such agent',
    'socket connecting',
    'socket open',
    'true 1',
    'socket closed',
  ]);
});

/** Runs the code blocks as one module: replaces the imports with the given names and strips types. */
async function runModule(source: string, names: Readonly<Record<string, unknown>>): Promise<void> {
  const body = source.replaceAll(/^import .* from '@gatehouse\/client';$/gm, '');
  const script = stripTypeScriptTypes(`export async function example({ ${Object.keys(names).join(', ')} }) {\n${body}\n}`);
  const module: { example: (given: typeof names) => Promise<void> } = await import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(script)}`
  );
  await module.example(names);
}
