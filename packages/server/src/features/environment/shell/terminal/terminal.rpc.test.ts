import type { EventKind } from '@gatehouse/contract';
import { createStepClock, type FakeRequest, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';

const timeoutMs = 120_000;
const toolCall = (args: object) => ({ toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'terminal', arguments: JSON.stringify(args) }] });
const shell = { action: 'open', argv: ['sh'], pattern: '\\$ $', timeoutMs };
const idIn = (text: string) => /term_[0-9a-f-]{36}/.exec(text)?.[0] ?? '';

describe.skipIf(findCommand('bwrap') === undefined)('terminal sessions', { timeout: 180_000 }, () => {
  let clock: StepClock;
  let server: TestServer;
  let heard: Record<string, readonly unknown[]>;
  beforeAll(async () => {
    clock = createStepClock();
    server = await startTestServer({
      clock,
      config: {
        exec: { terminalIdleMs: 600_000 },
        agents: {
          default: { model: 'mock/mock-fast', tools: { profile: 'coding' } },
          spare: { model: 'mock/mock-fast', tools: { profile: 'coding' } },
        },
      },
    });
    heard = Object.fromEntries(
      (['terminal.session_evicted', 'terminal.drive_promoted'] as const satisfies EventKind[]).map((kind) => [kind, server.heard(kind)]),
    );
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  const running = async () => (await server.client.call('background.list', {})).items;

  /** Runs a turn that opens a shell and ends; returns the holder of its token. */
  async function begin(agentId = 'default') {
    const holder = await server.as(['rpc']);
    server.provider.queue(toolCall(shell), { text: 'It is open.' });
    const { conversationRef, ...turn } = await holder.call('agent.execute', { agentId, message: 'Open it' });
    const [item] = (await holder.call('background.list', {})).items;
    expect(item).toMatchObject({ kind: 'terminal', agentId, conversationRef, description: 'sh' });
    return { holder, conversationRef, turn, id: item?.id ?? '', rootRunId: item?.rootRunId ?? '' };
  }

  test('end with the token, the root, the conversation and the agent that they belong to', async () => {
    const one = await begin();
    await server.client.call('tokens.revoke', { id: one.holder.tokenId });
    await expect.poll(running).toEqual([]);
    for (const stop of ['run.kill', 'lease.revoke'] as const) {
      const { rootRunId } = await begin();
      await server.client.call(stop, { rootRunId });
      await expect.poll(running).toEqual([]);
    }
    const { conversationRef } = await begin();
    await server.client.call('session.delete', { conversationRef });
    await expect.poll(running).toEqual([]);
    await begin('spare');
    await server.client.call('agents.suspend', { agentId: 'spare' });
    await expect.poll(running).toEqual([]);
    const { id, holder } = await begin();
    expect(await holder.call('background.stop', { id })).toEqual({ id, stopped: true });
    expect(await running()).toEqual([]);
  });

  test('their owner watches them, an admin types; foreign ones are answered like unknown ones', async () => {
    const { holder, id } = await begin();
    const other = await server.as(['rpc']);
    const unknown = 'term_00000000-0000-7000-8000-000000000000';
    for (const [client, named] of [
      [other, id],
      [holder, unknown],
    ] as const)
      await expect(client.call('background.screen', { id: named })).rejects.toMatchObject({ code: 'not_found' });
    await expect(server.client.call('background.type', { id: unknown, text: 'x' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(holder.call('background.type', { id, text: 'x' })).rejects.toMatchObject({ code: 'insufficient_scope' });

    const screen = await holder.call('background.screen', { id });
    expect(screen).toMatchObject({ cols: 80, rows: 24, cursor: { x: 2, y: 0 } });
    expect(screen.lines?.[0]).toEqual([{ text: '$' }]);
    await expect(server.client.call('background.type', { id, text: 'echo', keys: ['nope'] })).rejects.toMatchObject({ code: 'invalid_params' });
    await server.client.call('background.type', { id, text: "printf '\\033[1;31mred\\033[0m<b>\\n'", keys: ['enter'] });
    await expect
      .poll(async () => (await holder.call('background.screen', { id, after: screen.version, waitMs: 1000 })).lines?.flat(), { timeout: timeoutMs })
      .toEqual(expect.arrayContaining([{ text: 'red', fg: 1, bold: true }, { text: '<b>' }]));
    const { version } = await holder.call('background.screen', { id });
    expect(await holder.call('background.screen', { id, after: version })).toEqual({ id, version, cols: 80, rows: 24, cursor: null });
    await server.client.call('background.type', { id, text: 'exit\n' });
    await expect.poll(running, { timeout: timeoutMs }).toEqual([]);
    await expect(holder.call('background.screen', { id })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a wait that outlasts its turn continues in the background and returns to the conversation', async () => {
    const results: string[] = [];
    let id = '';
    server.provider.setAnswer((request: FakeRequest) => {
      const text = JSON.stringify(request.body);
      id = idIn(text);
      if (text.includes('Background task bt_')) {
        results.push(text);
        return { text: 'It is ready.' };
      }
      if (text.includes('continues in the background')) return { text: 'I wait.' };
      return id === '' ? toolCall(shell) : toolCall({ action: 'wait', id, pattern: 'READY', timeoutMs: 3_600_000 });
    });
    const turn = server.client.call('agent.execute', { message: 'Wait for it' });
    await expect.poll(() => id, { timeout: timeoutMs }).not.toBe('');
    await expect.poll(() => (clock.advance(30_000), heard['terminal.drive_promoted']?.length), { timeout: timeoutMs }).toBe(1);
    await turn;
    // Somebody waits for it, so it is not idle.
    clock.advance(700_000);
    expect(await running()).toHaveLength(2);
    await server.client.call('background.type', { id, text: 'echo REA""DY\n' });
    await expect.poll(() => results.length, { timeout: timeoutMs }).toBe(1);
    expect(results[0]).toContain('the pattern matched');
    server.provider.setAnswer(undefined);
    await server.client.call('background.stop', { id });
    expect(heard['terminal.session_evicted']).toEqual([]);
  });

  test('one that is opened and left is named by obs.explain, and so is its eviction', async () => {
    const { conversationRef } = await begin();
    const cause = async () => (await server.client.call('obs.explain', { sessionKey: conversationRef })).likelyRootCause?.code;
    await expect.poll(cause).toBe('terminal_drive_opened_without_task');
    await expect.poll(() => (clock.advance(60_000), heard['terminal.session_evicted']?.length), { timeout: timeoutMs }).toBe(1);
    await expect.poll(running).toEqual([]);
    await expect.poll(() => (clock.advance(1000), cause())).toBe('terminal_drive_evicted');
  });
});
