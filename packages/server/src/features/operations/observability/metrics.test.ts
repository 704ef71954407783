import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as z from 'zod';
import type { Tool } from '../../../runtime/tool.ts';
import { parseExposition, type Samples } from '../../../kernel/testing/exposition.ts';

const clockTool: Tool = {
  name: 'clock',
  description: 'Returns the time.',
  args: z.strictObject({}),
  risk: 'read',
  effect: 'pure',
  timeoutMs: 1_000,
  run: async () => ({ content: 'noon' }),
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    tools: [clockTool],
    config: { agents: { default: { model: 'mock/mock-fast', tools: { allow: ['clock'] } } } },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

async function scrape(token = server.token): Promise<Samples> {
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return parseExposition(await response.text());
}

/** Returns what increased between two scrapes. */
function grown(before: Samples, after: Samples): Record<string, number> {
  return Object.fromEntries([...after].map(([key, value]): [string, number] => [key, value - (before.get(key) ?? 0)]).filter(([, by]) => by !== 0));
}

it('counts a completion with a tool, calls, errors, refusals', async () => {
  const before = await scrape();
  server.provider.queue(
    { toolCalls: [{ id: 'c1', name: 'clock', arguments: '{}' }], usage: { input: 100, output: 10 } },
    { text: 'It is noon.', usage: { input: 120, output: 20 } },
  );
  const answer = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mock/mock-fast', messages: [{ role: 'user', content: 'time?' }] }),
  });
  expect(answer.status).toBe(200);
  await server.client.call('system.ping', {});
  const rpc = (body: unknown) =>
    fetch(`${server.url}/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await rpc({ jsonrpc: '2.0', id: 1, method: 'made.up', params: {} });
  await rpc({ jsonrpc: '2.0', id: 1, method: 'system.ping', params: { unknown: 1 } });
  await fetch(`${server.url}/v1/models`, { headers: { authorization: 'Bearer wrong-token-of-some-length' } });
  await fetch(`${server.url}/no/such/path`);
  const model = 'provider="mock",model="mock-fast"';
  await expect
    .poll(async () => grown(before, await scrape()))
    .toMatchObject({
      'gatehouse_http_requests_total{route="/v1/chat/completions",method="POST",status="2xx"}': 1,
      'gatehouse_http_requests_total{route="/rpc",method="POST",status="2xx"}': 3,
      'gatehouse_http_requests_total{route="none",method="GET",status="4xx"}': 1,
      'gatehouse_http_requests_total{route="/v1/models",method="GET",status="4xx"}': 1,
      'gatehouse_http_request_duration_seconds_count{family="rpc"}': 3,
      'gatehouse_rpc_calls_total{method="system.ping",outcome="ok"}': 1,
      'gatehouse_rpc_calls_total{method="system.ping",outcome="invalid_params"}': 1,
      'gatehouse_rpc_calls_total{method="none",outcome="method_not_found"}': 1,
      'gatehouse_errors_total{door="http",code="unauthenticated"}': 1,
      'gatehouse_errors_total{door="http",code="not_found"}': 1,
      gatehouse_auth_failures_total: 1,
      'gatehouse_turns_total{agent="default",origin="v1",outcome="stop"}': 1,
      'gatehouse_turn_duration_seconds_count{agent="default"}': 1,
      [`gatehouse_model_calls_total{${model},outcome="ok"}`]: 2,
      [`gatehouse_model_call_duration_seconds_count{${model}}`]: 2,
      [`gatehouse_model_tokens_total{${model},agent="default",type="input"}`]: 220,
      [`gatehouse_model_tokens_total{${model},agent="default",type="output"}`]: 30,
      // 1 and 2 dollars per million tokens.
      [`gatehouse_model_cost_dollars_total{${model},agent="default"}`]: expect.closeTo((220 + 60) / 1e6, 12),
      'gatehouse_tool_calls_total{tool="clock",outcome="ok"}': 1,
      'gatehouse_storage_writes_total{operation="turns.commit"}': 1,
    });
});

it('shows the state of the daemon and of the process', async () => {
  const samples = Object.fromEntries(await scrape());
  expect(samples).toMatchObject({
    'gatehouse_turns{state="running"}': 0,
    'gatehouse_turns{state="queued"}': 0,
    'gatehouse_connections{transport="websocket"}': 0,
    gatehouse_event_streams: 0,
    gatehouse_storage_writable: 1,
    'gatehouse_build_info{version="0.0.0-test"}': 1,
  });
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds', 'nodejs_heap_size_used_bytes'])
    expect(samples[name], name).toBeGreaterThan(0);
});

it('is for tokens with rpc, and names no token, caller or conversation', async () => {
  expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
  const narrow = await server.as(['api']);
  expect((await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${narrow.token}` } })).status).toBe(403);
  const caller = await server.as(['rpc']);
  await caller.call('agent.execute', { message: 'hello', sessionKey: { userId: 'somebody', channelId: 'somewhere' } });
  const keys = [...(await scrape(caller.token)).keys()].join('\n');
  expect(keys).toContain('origin="rpc"');
  for (const secret of [caller.tokenId, caller.token, 'somebody', 'somewhere', 'cv_']) expect(keys).not.toContain(secret);
});

it('counts what the rate limiter refuses', async () => {
  await using limited = await startTestServer({ config: { gateway: { rateLimit: { maxRequests: 2 } } } });
  const get = () => fetch(`${limited.url}/metrics`, { headers: { authorization: `Bearer ${limited.token}` } });
  await (await get()).text();
  await (await get()).text();
  expect((await get()).status).toBe(429);
  // The owner-only socket has no limit; it serves the same text.
  expect(await viaSocket(limited)).toMatchObject({ gatehouse_rate_limited_total: 1, 'gatehouse_errors_total{door="http",code="rate_limited"}': 1 });
});

async function viaSocket(limited: TestServer): Promise<Record<string, number>> {
  const text = await new Promise<string>((resolve, reject) => {
    request({ socketPath: `${limited.homeDir}/gatehouse.sock`, path: '/metrics', headers: { host: 'localhost' } }, (incoming) => {
      let all = '';
      incoming.on('data', (chunk: Buffer) => (all += chunk.toString())).on('end', () => resolve(all));
    })
      .on('error', reject)
      .end();
  });
  return Object.fromEntries(parseExposition(text));
}

it('has each metric of the dashboard for Grafana and of the alert rules', async () => {
  const folder = join(import.meta.dirname, '../../../../../../docs/monitoring');
  const texts = await Promise.all(['grafana.json', 'alerts.yml'].map((name) => readFile(join(folder, name), 'utf8')));
  const { panels } = JSON.parse(texts[0] ?? '') as { readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[] };
  const expressions = [...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), texts[1] ?? ''].join('\n');
  const named = new Set([...expressions.matchAll(/\b(?:gatehouse|process|nodejs)_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, '')));
  const sources = (
    await Promise.all(['instruments.ts', 'sampled-metrics.ts'].map((name) => readFile(join(import.meta.dirname, name), 'utf8')))
  ).join();
  expect([...named].filter((name) => !sources.includes(`'${name}'`))).toEqual([]);
  expect(named.size).toBe(20);
});
