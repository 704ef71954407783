import type { ServerResponse } from 'node:http';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { collector, createUser } from '../testing/test-io.ts';
import { type Seen, startServer, token } from '../testing/servers.ts';

const at = Date.UTC(2026, 10, 21, 12, 4, 5, 123);
const identity = { conversationRef: 'cv_0', sessionKey: 'ada:desk', agentId: 'default' };
const sent = {
  ...identity,
  turnId: 'tn_1',
  traceId: 'tr_1',
  origin: 'api',
  messageId: 'm1',
  content: 'All "good"\n\u001b[2Jhere',
  finishReason: 'stop',
  timestamp: at,
};

function event(id: number | undefined, kind: string, payload: object): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${kind}\ndata: ${JSON.stringify(payload)}\n\n`;
}

function stream(response: ServerResponse, text: string): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`retry: 1\n\n${text}`);
  return response;
}

/** The running command, with a way to press Ctrl-C. */
async function open(answer: (seen: Seen, response: ServerResponse, attempt: number) => unknown) {
  let attempts = 0;
  const server = await startServer((seen, response) => answer(seen, response, (attempts += 1)));
  const user = await createUser();
  return {
    server,
    user,
    start(args: readonly string[] = [], { tty = false, env = {} } = {}) {
      const out = collector();
      const err = collector();
      let press = () => {};
      const stdout = Object.assign(out.stream, { isTTY: tty });
      const ended = user.run({
        args: ['logs', ...args],
        env: { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: token, ...env },
        io: { stdout, stderr: err.stream, now: () => at, onInterrupt: (handler) => ((press = handler), () => undefined) },
      });
      return { out, err, ended, press: () => press() };
    },
    async [Symbol.asyncDispose]() {
      await user[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test("one line for each event, until Ctrl-C; untrusted text can't forge lines", async () => {
  await using session = await open(
    ({ path }, response) =>
      void stream(
        response,
        event(7, 'message:sent', sent) +
          event(8, 'observability:token_usage', { agentId: 'default', tokens: { prompt: 3, total: 5 }, cost: null, timestamp: at }) +
          event(9, 'later:kind', { path }),
      ),
  );
  const running = session.start(['--kinds', 'message:sent,later:kind', '--kinds', 'observability:token_usage']);
  await running.out.seen('later:kind');
  running.press();
  expect((await running.ended).code).toBe(130);
  expect(running.out.text()).toBe(
    [
      '12:04:05.123  message:sent                agentId=default  sessionKey=ada:desk  origin=api  content="All \\"good\\"\\n\\u001b[2Jhere"  finishReason=stop',
      '12:04:05.123  observability:token_usage   agentId=default  tokens.prompt=3  tokens.total=5  cost=null',
      '12:04:05.123  later:kind                  path="/api/events?kinds=message%3Asent%2Clater%3Akind%2Cobservability%3Atoken_usage"\n',
    ].join('\n'),
  );
  expect(running.err.text()).toBe('');
});

test('--json prints one complete object per line', async () => {
  await using session = await open(
    (_seen, response) => void stream(response, event(7, 'message:sent', sent) + event(undefined, 'message:streaming', { delta: 'x' })),
  );
  const running = session.start(['--json', '--since-id', '6']);
  await running.out.seen('streaming');
  running.press();
  await running.ended;
  expect(
    running.out
      .text()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { id: '7', kind: 'message:sent', payload: sent },
    { id: '7', kind: 'message:streaming', payload: { delta: 'x' } },
  ]);
  expect(session.server.requests[0]?.headers['last-event-id']).toBe('6');
});

test('a lost connection is reported once and resumed after the last event; a gap is shown', async () => {
  await using session = await open((_seen, response, attempt) => {
    if (attempt === 1) stream(response, event(1, 'agent:hot_added', { agentId: 'a', timestamp: at })).end();
    else if (attempt < 4) response.destroy();
    else stream(response, event(5, 'gap', { from: 2, to: 5, reason: 'expired' }));
  });
  const running = session.start();
  await running.out.seen('gap');
  running.press();
  await running.ended;
  expect(running.out.text()).toContain('12:04:05.123  gap: events were missed: they are older than the daemon keeps\n');
  expect(running.err.text()).toBe('(connection lost, reconnecting: The server ended the event stream)\n(reconnected)\n');
  expect(session.server.requests.at(-1)?.headers['last-event-id']).toBe('1');
});

test('colours are used on a terminal only, unless disabled', async () => {
  await using session = await open((_seen, response) => void stream(response, event(1, 'system:error', { source: 'storage', timestamp: at })));
  const seen: string[] = [];
  for (const [tty, env] of [
    [true, {}],
    [true, { NO_COLOR: '1' }],
    [false, {}],
  ] as const) {
    const running = session.start([], { tty, env });
    await running.out.seen('storage');
    running.press();
    await running.ended;
    seen.push(running.out.text());
  }
  const plain = '12:04:05.123  system:error                source=storage\n';
  expect(seen).toEqual(['\x1b[2m12:04:05.123\x1b[22m  \x1b[31msystem:error\x1b[39m                \x1b[2msource=\x1b[22mstorage\n', plain, plain]);
});

test('--last starts with the newest events and continues; --no-follow stops there', async () => {
  const entries = [
    { id: 3, event: 'agent:hot_added', payload: { agentId: 'a', timestamp: at }, timestamp: at },
    { id: 4, event: 'agent:hot_removed', payload: { agentId: 'a', timestamp: at }, timestamp: at },
  ];
  await using session = await open(({ path }, response) =>
    path.startsWith('/api/activity') ? { entries, count: 2 } : void stream(response, event(5, 'agent:hot_added', { agentId: 'b', timestamp: at })),
  );
  const whole = session.start(['--no-follow']);
  expect((await whole.ended).code).toBe(0);
  expect(whole.out.text().split('\n')).toHaveLength(3);

  const running = session.start(['--last', '2', '--kinds', 'agent:hot_added']);
  await running.out.seen('agentId=b');
  running.press();
  await running.ended;
  expect(running.out.text().match(/agentId=./g)).toEqual(['agentId=a', 'agentId=b']);
  expect(session.server.requests.map(({ path }) => path)).toEqual([
    '/api/activity?limit=50',
    '/api/activity?limit=2',
    '/api/events?kinds=agent%3Ahot_added',
  ]);
  expect(session.server.requests.at(-1)?.headers['last-event-id']).toBe('4');
});

test.each([
  [['--last', 'many'], 2, 'non-negative integer'],
  [['--last', '5', '--since-id', '7'], 2, 'mutually exclusive'],
  [['--since-id', '7', '--no-follow'], 2, '--last'],
])('%j is a wrong command line', async (args, code, expected) => {
  await using session = await open(() => ({}));
  const running = session.start(args);
  expect((await running.ended).code).toBe(code);
  expect(running.err.text()).toContain(expected);
});

test('an unreachable daemon, a refused token and an unknown kind end it at once', async () => {
  await using session = await open(({ path }, response) => {
    if (path.includes('kinds')) return void response.writeHead(400).end('{"error":"kinds: there is no event nonsense.","code":"invalid_params"}');
    return void response.writeHead(401).end('{"error":"Unknown token.","code":"unauthenticated"}');
  });
  const refused = session.start();
  expect((await refused.ended).code).toBe(4);
  const unknown = session.start(['--kinds', 'nonsense', '--json']);
  expect((await unknown.ended).code).toBe(2);
  expect(JSON.parse(unknown.err.text())).toMatchObject({ error: { code: 'invalid_params', message: 'kinds: there is no event nonsense' } });
  const stopped = session.start(['--url', 'http://127.0.0.1:1']);
  expect((await stopped.ended).code).toBe(3);
  expect(stopped.err.text()).toMatch(/^error: The connection to http:\/\/127\.0\.0\.1:1 failed/);
});

test('the owner-only socket carries the stream too', async () => {
  await using user = await createUser();
  await mkdir(user.home);
  await using _control = await startServer(
    ({ path }, response) =>
      path === '/control/info'
        ? { address: null, pid: 1, version: '0.1.0' }
        : void stream(response, event(1, 'agent:hot_added', { path, timestamp: at })),
    join(user.home, 'gatehouse.sock'),
  );
  const out = collector();
  let press = () => {};
  const ended = user.run({
    args: ['logs', '--kinds', 'agent:hot_added'],
    io: { stdout: out.stream, onInterrupt: (handler) => ((press = handler), () => undefined) },
  });
  await out.seen('/api/events?kinds=agent%3Ahot_added');
  press();
  expect((await ended).code).toBe(130);
});

const line = (id: number, level: string, message: string, more: object = {}) => ({
  id,
  timestamp: at,
  level,
  module: 'models',
  message,
  fields: {},
  ...more,
});

function serveLog(lines: () => readonly object[], live: string) {
  return ({ path, body }: Seen, response: ServerResponse) => {
    if (path.startsWith('/api/events')) return void stream(response, live);
    const { id, params } = JSON.parse(body) as { id: number; params: { afterId: number } };
    const result = { lines: lines().filter((one) => 'id' in one && typeof one.id === 'number' && one.id > params.afterId), modules: ['models'] };
    return { jsonrpc: '2.0', id, result };
  };
}

test('--daemon shows the newest lines of the log, then those that follow, each once', async () => {
  const kept = [line(1, 'info', 'Started'), line(2, 'error', 'Failed\u001b[2J', { fields: { status: 500, err: { stack: 'Error: no\n  at x' } } })];
  const live = event(undefined, 'daemon:log', kept[1] ?? {}) + event(undefined, 'daemon:log', line(3, 'warn', 'Refused', { module: undefined }));
  await using session = await open(serveLog(() => kept, live));
  const running = session.start(['--daemon']);
  await running.out.seen('Refused');
  running.press();
  expect((await running.ended).code).toBe(130);
  expect(running.out.text()).toBe(
    [
      '12:04:05.123 info  models: Started',
      '12:04:05.123 error models: Failed\\u001b[2J status=500 err="Error: no"',
      '    Error: no',
      '      at x',
      '12:04:05.123 warn  Refused\n',
    ].join('\n'),
  );
});

test('--daemon filters by level and module, prints JSON, and ends with --no-follow', async () => {
  await using session = await open(serveLog(() => [line(1, 'info', 'Started'), line(2, 'error', 'Failed')], ''));
  const running = session.start(['--daemon', '--level', 'error', '--module', 'models', '--json', '--no-follow']);
  expect((await running.ended).code).toBe(0);
  expect(running.out.text()).toBe(`${JSON.stringify(line(2, 'error', 'Failed'))}\n`);
  expect(JSON.parse(session.server.requests[0]?.body ?? '').params).toEqual({ level: 'error', module: 'models', limit: 50, afterId: 0 });
  expect((await session.start(['--level', 'error']).ended).code).toBe(2);
  expect((await session.start(['--daemon', '--kinds', 'message:sent']).ended).code).toBe(2);
});
