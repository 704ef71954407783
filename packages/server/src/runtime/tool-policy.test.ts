import { AgentConfig, type AgentConfigInput, toolProfiles, TurnOrigin } from '@gatehouse/contract';
import * as fc from 'fast-check';
import * as z from 'zod';
import { describe, expect, it } from 'vitest';
import type { Tool, ToolRisk } from './tool.ts';
import { refuseTool, selectTools } from './tool-policy.ts';

function tool(name: string, risk: ToolRisk): Tool {
  return { name, risk, description: name, args: z.strictObject({}), effect: 'pure', timeoutMs: 1000, run: async () => ({ content: '' }) };
}
const all = [
  tool('read', 'read'),
  tool('write', 'write'),
  tool('web_fetch', 'outward'),
  tool('exec', 'write'),
  tool('message', 'outward'),
  tool('memory_search', 'read'),
];
const agent = (config: AgentConfigInput) => AgentConfig.parse(config);
const names = (config: AgentConfigInput, origin: TurnOrigin) => selectTools(all, agent(config), origin).map((each) => each.name);

describe('tool policy', () => {
  it.each([
    ['none', []],
    ['minimal', ['read', 'write']],
    ['coding', ['read', 'write', 'exec']],
    ['messaging', ['message']],
    ['supervisor', []],
    ['full', all.map((each) => each.name)],
  ] as const)('profile %s', (profile, expected) => {
    expect(names({ tools: { profile } }, 'rpc')).toEqual(expected);
  });

  it('adds what is allowed, by name or group, and takes away what is denied, whatever else says', () => {
    expect(names({ tools: { profile: 'none', allow: ['read', 'group:web', 'group:memory'] } }, 'rpc')).toEqual([
      'read',
      'web_fetch',
      'memory_search',
    ]);
    expect(names({ tools: { profile: 'full', allow: ['exec', 'web_fetch'], deny: ['exec', 'group:web'] } }, 'rpc')).toEqual([
      'read',
      'write',
      'message',
      'memory_search',
    ]);
    expect(names({ tools: { profile: 'minimal', allow: ['group:unknown', 'unknown'] } }, 'rpc')).toEqual(['read', 'write']);
  });

  it.each(['v1', 'webhook'] as const)('%s gets nothing that writes or reaches out unless it is named for that origin', (origin) => {
    expect(names({ tools: { profile: 'full' } }, origin)).toEqual(['read', 'memory_search']);
    expect(names({ tools: { profile: 'full' }, originTools: { [origin]: ['write', 'group:web'] } }, origin)).toEqual([
      'read',
      'write',
      'web_fetch',
      'memory_search',
    ]);
    expect(names({ tools: { profile: 'full' }, originTools: { [origin === 'v1' ? 'webhook' : 'v1']: ['write'] } }, origin)).toEqual([
      'read',
      'memory_search',
    ]);
    // The origin bounds the agent's policy, it does not widen it.
    expect(names({ tools: { profile: 'none' }, originTools: { [origin]: ['write'] } }, origin)).toEqual([]);
    expect(names({ tools: { profile: 'full', deny: ['write'] }, originTools: { [origin]: ['write'] } }, origin)).toEqual(['read', 'memory_search']);
  });

  it('says why', () => {
    const config = agent({ tools: { profile: 'minimal', deny: ['read'] } });
    expect(all.map((each) => refuseTool(each, config, 'v1'))).toEqual([
      'explicit_deny',
      'origin',
      'not_in_profile',
      'not_in_profile',
      'not_in_profile',
      'not_in_profile',
    ]);
  });

  it('never lets a denied tool through, nor an untrusted origin widen anything', () => {
    const patterns = fc.array(
      fc.constantFrom('read', 'write', 'web_fetch', 'exec', 'message', 'memory_search', 'group:web', 'group:coding', 'group:messaging'),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...toolProfiles),
        patterns,
        patterns,
        patterns,
        fc.constantFrom(...TurnOrigin.options),
        (profile, allow, deny, v1, origin) => {
          const config = { tools: { profile, allow, deny }, originTools: { v1 } };
          const chosen = names(config, origin);
          for (const denied of deny) expect(chosen).not.toContain(denied);
          expect(names({ tools: { profile, allow, deny } }, 'rpc')).toEqual(expect.arrayContaining(chosen));
        },
      ),
    );
  });
});
