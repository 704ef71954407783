import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const secret = 'a-secret-of-the-installation';
const clock = createStepClock();
let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ clock, secrets: [secret] });
});
afterEach(() => server[Symbol.asyncDispose]());

const make = async (id: string) => {
  clock.advance(1000);
  await server.client.call('tokens.create', { id, scopes: ['rpc'] });
};

test('rows come newest first, in pages that neither repeat nor miss one, on both transports', async () => {
  for (let n = 0; n < 7; n += 1) await make(`t${n}`);
  const socket = server.socket();
  const ids: string[] = [];
  for (let before: string | undefined, more = true; more;) {
    const page = await socket.call('obs.audit.query', { limit: 3, actionType: 'tokens.create', ...(before !== undefined && { before }) });
    ids.push(...page.rows.map(({ target }) => target ?? ''));
    before = page.rows.at(-1)?.id;
    more = page.hasMore;
    // Rows added meanwhile do not appear on the following pages.
    if (more) await make(`later${ids.length}`);
  }
  socket.close();
  expect(ids).toEqual(['t6', 't5', 't4', 't3', 't2', 't1', 't0']);
});

test('filters are combined with AND, and every row has its kind and severity', async () => {
  await make('a');
  const fromMs = clock.now() + 1;
  await make('b');
  await server.client.call('tokens.revoke', { id: 'a' });
  await server.client.call('daemon.setLogLevel', { level: 'debug' });
  const query = async (params: Parameters<typeof server.client.call<'obs.audit.query'>>[1]) =>
    (await server.client.call('obs.audit.query', params)).rows.map(({ action, target }) => `${action} ${target ?? ''}`.trim());
  expect(await query({ target: 'a' })).toEqual(['tokens.revoke a', 'tokens.create a']);
  expect(await query({ target: 'a', untilMs: fromMs })).toEqual(['tokens.create a']);
  expect(await query({ actionType: 'tokens.create', sinceMs: fromMs, principalId: 'token:root' })).toEqual(['tokens.create b']);
  expect(await query({ classification: 'security', actionType: 'tokens.revoke', outcome: 'success' })).toEqual(['tokens.revoke a']);
  expect(await query({ principalId: 'token:nobody' })).toEqual([]);
  const { rows } = await server.client.call('obs.audit.query', { limit: 5000 });
  expect(rows.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['auth', 'audit']));
  expect(rows.find(({ action }) => action === 'tokens.revoke')).toMatchObject({ kind: 'auth', severity: 'info', actor: 'token:root' });
});

test('a secret that got into a row is not returned', async () => {
  await server.client.call('tokens.create', { id: secret, scopes: ['rpc'] });
  const answer = await server.client.call('obs.audit.query', { actionType: 'tokens.create' });
  expect(answer.rows).toMatchObject([{ target: '[REDACTED]' }]);
  expect(JSON.stringify(answer)).not.toContain(secret);
});

test('a token that is limited to some agents sees its own acts; an unknown row starts no page', async () => {
  await make('a');
  const limited = await server.as(['admin'], { agents: ['default'] });
  expect((await limited.call('obs.audit.query', {})).rows).toEqual([]);
  await limited.call('tokens.create', { id: 'mine', scopes: ['rpc'], agents: ['default'] });
  expect((await limited.call('obs.audit.query', {})).rows).toMatchObject([{ target: 'mine', actor: `token:${limited.tokenId}` }]);
  await expect(server.client.call('obs.audit.query', { before: 'au_00000000-0000-7000-8000-000000000000' })).rejects.toMatchObject({
    code: 'not_found',
  });
  await expect(server.client.call('obs.audit.query', { limit: 0 })).rejects.toMatchObject({ code: 'invalid_params' });
});
