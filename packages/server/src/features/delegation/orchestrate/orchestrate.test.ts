import { AgentConfig } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import { findCommand } from '../../../../../../tools/system-packages.mjs';
import { systemClock } from '../../../kernel/clock.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { type Jail, openJail } from '../../../kernel/jail.ts';
import { turnInput } from '../../../runtime/testing.ts';
import type { Agent } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import { allClean } from '../../environment/workspace/file-tools/testing.ts';
import { createOrchestrate } from './orchestrate.ts';

const hasJail = findCommand('bwrap') !== undefined && findCommand('prlimit') !== undefined;
const agent: Agent = { id: 'default', config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: true, workspaceDir: '/nowhere' };
const autonomy: AutonomyApi = {
  standing: () => ({ profile: 'standard', caps: new Set(['orch:read', 'orch:analyze']) }),
  admit() {},
  rootOf: () => 'root-rpc-1',
  issuing: () => () => {},
  leaseUntilMs: () => systemClock.now() + 60_000,
  leaseOf: async () => undefined,
  budget: { spend() {}, covers: () => true },
  onStop() {},
  onRevoked() {},
  isStopped: () => false,
};

async function make(over: { readonly isEnabled?: () => boolean; readonly jail: () => Promise<Jail> }) {
  const db = await openInlineDb({ operations: [], migrations: [] });
  const orchestrate = createOrchestrate({
    db,
    bus: createEventBus(() => {}),
    clock: systemClock,
    processClock: systemClock,
    bootId: 'boot',
    isEnabled: () => true,
    agents: { defaultId: 'default', list: () => [agent], find: () => agent, usable: () => agent },
    autonomy,
    toolsOf: () => [],
    rates: () => ({ perRootPerSecond: 20, perSocketPerSecond: 10, connectsPerMinute: 60 }),
    key: Buffer.alloc(32, 1),
    socketFile: '/nowhere/capability.sock',
    capacity: { assertCapacity: async () => {}, watched: (jail) => jail },
    workspace: { inside: '/workspace', masked: [], mounts: async () => [] },
    limitsOf: () => ({ memoryBytes: 1e8, processes: 10, cpuSeconds: 10, fileBytes: 1e6, openFiles: 64 }),
    taints: allClean,
    beginScript: operation('test.begin', async () => {}),
    endScript: operation('test.end', async () => {}),
    ...over,
  });
  return Object.assign(orchestrate, { [Symbol.asyncDispose]: () => db[Symbol.asyncDispose]() });
}

test.skipIf(!hasJail)('without a jail the script is refused, and the tool is not offered any more', async () => {
  await using orchestrate = await make({ jail: () => openJail({ clock: systemClock, find: () => undefined }) });
  const [tool] = orchestrate.tools();
  expect(orchestrate.tools()).toBe(orchestrate.tools());
  const { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal } = turnInput();
  const about = { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal };
  const context = { ...about, workspaceDir: '/nowhere', callId: 'c1', callTool: async () => ({ content: 'none' }), tainted: () => false };
  await expect(async () => tool?.run(tool.args.parse({ script: 'console.log(1)' }), context)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('install bubblewrap'),
  });
  expect(orchestrate.tools()).toEqual([]);
});

test('arguments are limited, and errors name the invalid one', async () => {
  await using orchestrate = await make({ jail: () => openJail({ clock: systemClock }) });
  for (const [bad, path] of [
    [{}, 'script'],
    [{ script: 'x'.repeat(300_000) }, 'script'],
    [{ script: 'x', language: 'sh' }, 'language'],
    [{ script: 'x', timeoutMs: 300_001 }, 'timeoutMs'],
    [{ script: 'x', network: true }, ''],
  ] as const)
    for (const tool of orchestrate.tools()) expect(tool.args.safeParse(bad).error?.issues[0]?.path.join('.')).toBe(path);
  await using off = await make({ isEnabled: () => false, jail: () => openJail({ clock: systemClock }) });
  expect(off.tools()).toEqual([]);
});
