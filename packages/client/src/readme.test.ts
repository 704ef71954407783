import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { expect, test } from 'vitest';
import * as client from './index.ts';
import { answer, type SeenRequest, startGateway } from './testing/gateway.ts';

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

function serve({ path, body, response }: SeenRequest): unknown {
  if (path === '/rpc') return rpcReply(body);
  if (JSON.parse(body).stream !== true) return answer(response, 200, completion);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (fields: object) =>
    response.write(`data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`);
  chunk({ choices: [{ index: 0, delta: { content: 'Streamed' }, finish_reason: null }] });
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  chunk({ choices: [], usage: completion.usage });
  return void response.end('data: [DONE]\n\n');
}

test('the examples of README.md do what they say', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const source = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]).join('\n');
  expect(source).toContain('createClient');
  await using gateway = await startGateway({
    http: serve,
    socket: ({ socket }) => socket.on('message', (data: Buffer) => socket.send(JSON.stringify(rpcReply(data.toString())))),
  });
  const lines: string[] = [];
  await runModule(source, { ...client, url: gateway.url, token, log: (line: string) => lines.push(line) });
  expect(lines).toEqual([
    'server time 42',
    'A thing in between.',
    'pong true',
    'agents default',
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

/** Runs the blocks as one module: the imports are replaced by the given names, the types are stripped. */
async function runModule(source: string, names: Readonly<Record<string, unknown>>): Promise<void> {
  const body = source.replaceAll(/^import .* from '@gatehouse\/client';$/gm, '');
  const script = stripTypeScriptTypes(`export async function example({ ${Object.keys(names).join(', ')} }) {\n${body}\n}`);
  const module: { example: (given: typeof names) => Promise<void> } = await import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(script)}`
  );
  await module.example(names);
}
