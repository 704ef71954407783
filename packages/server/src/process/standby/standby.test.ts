import { createClient } from '@gatehouse/client';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { startFakeProvider } from '@gatehouse/testkit';
import { describe, test } from 'vitest';
import { exitCodes } from '../exit-codes.ts';
import { writeNewerProgram } from './testing/newer-program.ts';
import { openSharedNodes } from './testing/shared-nodes.ts';

/** Longer than a lease, a start and a take-over on a machine that does other work too. */
const takeOver = { timeout: 60_000, interval: 50 };

// `proving/takeover.test.ts` has what happens to the work of one that was killed or frozen.
describe.runIf(findPostgres() !== undefined).concurrent('two daemons on one PostgreSQL', { timeout: 180_000 }, () => {
  test('one is active and the other is a standby, which takes over at once when that one stops', async ({ expect }) => {
    await using provider = await fakeProvider();
    await using nodes = await openSharedNodes({ providerUrl: provider.url });
    const both = await Promise.all([nodes.start('a'), nodes.start('b')]);
    const active = await nodes.active(both);
    const standby = both[0] === active ? both[1] : both[0];
    await expect.poll(() => standby.ready(), takeOver).toMatchObject([503, { status: 'standby', role: 'standby' }]);
    await expect.poll(() => standby.output()).toContain(`Standby: another node is active\n${standby.url}`);
    expect((await active.ready())[1]).toMatchObject({ status: 'ok', role: 'active', checks: { lease: { status: 'ok' } } });
    const refused = await fetch(`${standby.url}/v1/chat/completions`, { method: 'POST', body: '{}' });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    const listed = async () =>
      (await active.client.call('gateway.status')).nodes?.map(({ leaseLeftMs, ...node }) => ({ ...node, hasLease: leaseLeftMs > 0 }));
    // Addresses are stored with the next renewal.
    await expect.poll(listed, takeOver).toMatchObject([
      { self: true, role: 'active', state: 'live', address: active.url, hasLease: true },
      { role: 'standby', state: 'live', address: standby.url, hasLease: true },
    ]);

    active.child.kill('SIGTERM');
    expect(await active.exit).toBe(exitCodes.ok.code);
    await expect.poll(() => standby.ready(), takeOver).toMatchObject([200, { role: 'active' }]);
    // In the time of the database: before the lease of the first one would have ended.
    const [times] = await nodes.rows(
      'SELECT a.fence::int, a.since_ms < min(n.lease_until_ms) AS early FROM active_node a, node n GROUP BY a.fence, a.since_ms',
    );
    expect(times).toEqual({ fence: 2, early: true });

    // A standby stops at once, too.
    const again = await nodes.start(both[0] === active ? 'a' : 'b');
    await expect.poll(() => again.ready(), takeOver).toMatchObject([503, { checks: { lease: { status: 'ok' } } }]);
    // It says so while it could not take over.
    await nodes.rows('ALTER TABLE active_node RENAME TO away');
    await expect.poll(() => again.ready(), takeOver).toMatchObject([503, { checks: { lease: { status: 'failed' } } }]);
    await nodes.rows('ALTER TABLE away RENAME TO active_node');
    await expect.poll(() => again.ready(), takeOver).toMatchObject([503, { checks: { lease: { status: 'ok' } } }]);
    again.child.kill('SIGTERM');
    expect(await again.exit).toBe(exitCodes.ok.code);
    expect((await standby.ready())[0]).toBe(200);
  });

  test('a newer program changes the schema at once when the active one can live with it, and otherwise when that one has stopped', async ({
    expect,
  }) => {
    await using provider = await fakeProvider();
    await using nodes = await openSharedNodes({ providerUrl: provider.url });
    const old = await nodes.start('a');
    await nodes.active([old]);
    const schema = async () => (await nodes.rows('SELECT max(number)::int AS schema FROM schema_migration'))[0];
    const current = await schema();
    const demanding = await nodes.start('b', { program: writeNewerProgram(nodes.folder, 900) });
    await expect.poll(() => demanding.ready(), takeOver).toMatchObject([503, { status: 'standby' }]);
    expect([await schema(), (await old.ready())[0]]).toEqual([current, 200]);
    demanding.child.kill('SIGTERM');
    expect(await demanding.exit).toBe(exitCodes.ok.code);

    const modest = await nodes.start('b', { program: writeNewerProgram(nodes.folder, 1) });
    await expect.poll(() => modest.ready(), takeOver).toMatchObject([503, { status: 'standby' }]);
    await expect.poll(schema, takeOver).toEqual({ schema: 900 });
    expect((await old.ready())[0]).toBe(200);
    old.child.kill('SIGTERM');
    expect(await old.exit).toBe(exitCodes.ok.code);
    await expect.poll(() => modest.ready(), takeOver).toMatchObject([200, { role: 'active' }]);
    // The program of the version before starts, too.
    const again = await nodes.start('a');
    await expect.poll(() => again.ready(), takeOver).toMatchObject([503, { status: 'standby' }]);
  });

  test('configuration and secrets of the active one are those of the standby after it took over, and it starts with the secrets', async ({
    expect,
  }) => {
    await using provider = await fakeProvider();
    await using nodes = await openSharedNodes({ providerUrl: provider.url });
    const mock = { type: 'openai-compatible', baseUrl: provider.url, apiKey: '${MODEL_KEY}', models: [{ id: 'mock-fast' }] };
    const config = { providers: { mock } };
    const first = await nodes.start('a');
    await nodes.active([first]);
    const set = (client: typeof first.client, key: string, value: string) => client.call('env.set', { key, value });
    await set(first.client, 'MODEL_KEY', 'sk-canary-before');
    // It has no copy: the rows are the only place.
    const second = await nodes.start('b', { config });
    await expect.poll(() => second.ready(), takeOver).toMatchObject([503, { status: 'standby' }]);
    const edited = `${readFileSync(join(second.home, 'config.yaml'), 'utf8')} # by hand`;
    writeFileSync(join(second.home, 'config.yaml'), edited);
    // Where the system sends no notice, a check each minute finds the edit.
    await expect.poll(() => second.output(), { ...takeOver, timeout: 75_000 }).toContain('config.yaml was edited on a standby: the edit is not used');
    const change = (path: string, value: string) => first.client.call('config.set', { path, value, confirm: true });
    await change('providers.mock.apiKey', '${MODEL_KEY}');
    await set(first.client, 'MODEL_KEY', 'sk-canary-after');
    await change('agents.default.name', 'Renamed');
    await first.client.call('agents.create', { agentId: 'scout', config: { name: 'Scout' } });
    await first.client.call('agents.update', { agentId: 'scout', config: { maxSteps: 9 } });
    await first.client.call('agents.create', { agentId: 'brief' });
    await first.client.call('agents.suspend', { agentId: 'scout' });
    await first.client.call('agents.delete', { agentId: 'brief' });
    const secretOf = (id: string) => `${id}-secret-0123456789-abcdefghijklmnop`;
    const entries = [
      { id: 'gone', secret: secretOf('gone') },
      { id: 'kept', secret: secretOf('kept'), person: 'ada', scopes: ['rpc'] },
    ];
    await first.client.call('config.set', { path: 'gateway.tokens', value: entries, confirm: true });
    await first.client.call('config.set', { path: 'persons.ada', value: { budgets: { perDayTokens: 1_000_000 } } });
    await first.client.call('tokens.revoke', { id: 'gone' });
    const { secret: rotated } = await first.client.call('tokens.rotate', { id: 'kept' });
    const ofAda = ({ url }: { readonly url: string }) => createClient({ url, token: rotated }).call;
    await ofAda(first)('agent.execute', { message: 'Counts', sessionKey: 'ada:desk' });
    const capOfAda = async (node: { readonly url: string }) =>
      (await ofAda(node)('capabilities.introspect', {})).budgets.find(({ scope }) => scope === 'person')?.used;
    const used = await capOfAda(first);
    expect(used).toBeGreaterThan(0);
    for (const key of ['GONE_KEY', 'KEPT_KEY']) await set(first.client, key, 'another value');
    await first.client.call('env.remove', { key: 'GONE_KEY' });
    await expect(set(first.client, 'SIXTH_KEY', 'too many')).rejects.toMatchObject({ code: 'rate_limited' });
    first.child.kill('SIGKILL');
    // As of a daemon whose clock is ahead: the take-over may take longer than the minute of the limit.
    await nodes.rows('UPDATE secret_write SET at_ms = at_ms + 50000');
    await expect.poll(() => second.ready(), takeOver).toMatchObject([200, {}]);
    // The limit is that of the installation.
    await expect(set(second.client, 'SIXTH_KEY', 'too many')).rejects.toMatchObject({ code: 'rate_limited' });
    await second.client.call('agent.execute', { message: 'Hello' });
    expect(provider.requests.at(-1)?.headers['authorization']).toBe('Bearer sk-canary-after');
    expect((await second.client.call('config.read', { section: 'agents' })).config).toMatchObject({ default: { name: 'Renamed' } });
    expect(readFileSync(join(second.home, 'config.yaml'), 'utf8')).not.toContain('# by hand');
    const unused = readdirSync(second.home).filter((name) => name.startsWith('config.yaml.unused-'));
    expect(unused.map((name) => readFileSync(join(second.home, name), 'utf8'))).toContain(edited);
    expect(await capOfAda(second)).toBe(used);
    expect((await ofAda(second)('session.history', { sessionKey: 'ada:desk' })).messages).toHaveLength(2);
    for (const id of ['gone', 'kept'])
      await expect(createClient({ url: second.url, token: secretOf(id) }).call('system.ping', {})).rejects.toMatchObject({ code: 'unauthenticated' });
    expect((await second.client.call('agents.list', {})).agents).toEqual(['default', 'scout']);
    expect(await second.client.call('agents.get', { agentId: 'scout' })).toMatchObject({
      config: { name: 'Scout', maxSteps: 9 },
      origins: { maxSteps: 'file' },
      suspended: true,
      source: 'file',
    });
    expect((await second.client.call('config.history', { limit: 50 })).entries.map(({ version, from }) => [version, from])).toEqual([
      ...[11, 10, 9, 8].map((version) => [version, 'rpc']),
      ...[7, 6, 5, 4].map((version) => [version, 'agents']),
      [3, 'rpc'],
      [2, 'rpc'],
      [1, 'file'],
    ]);
    expect(await second.client.call('gateway.status')).toMatchObject({ restartNeeded: [], address: second.url });
    const { secrets } = await second.client.call('env.list', {});
    expect(secrets.map(({ name }) => name)).toEqual(['KEPT_KEY', 'MODEL_KEY']);
    expect(Object.keys(JSON.parse(readFileSync(join(second.home, 'secrets.sealed'), 'utf8')).secrets)).toEqual(['KEPT_KEY', 'MODEL_KEY']);
    expect(JSON.stringify(await nodes.rows('SELECT * FROM secret'))).not.toContain('canary');
    expect(first.output() + second.output()).not.toContain('canary');
  });

  test('a daemon with another install key does not start', async ({ expect }) => {
    await using provider = await fakeProvider();
    await using nodes = await openSharedNodes({ providerUrl: provider.url });
    await nodes.active([await nodes.start('a')]);
    const other = await nodes.start('b', { env: { GATEHOUSE_MASTER_KEY: '08'.repeat(32) } });
    expect(await other.exit).toBe(exitCodes.config.code);
    expect(other.output()).toMatch(
      /install key of fingerprint [0-9a-f]{16}, and this daemon has the one of fingerprint [0-9a-f]{16}: give all daemons/,
    );
  });
});

async function fakeProvider() {
  const provider = await startFakeProvider();
  return { ...provider, [Symbol.asyncDispose]: () => provider.close() };
}
