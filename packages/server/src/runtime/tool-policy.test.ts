import { AgentConfig, type AgentConfigInput, toolProfiles, TurnOrigin } from '@gatehouse/contract';
import * as fc from 'fast-check';
import * as z from 'zod';
import { describe, expect, it } from 'vitest';
import type { Tool, ToolRisk } from './tool.ts';
import { authorityOf, refuseTool, selectTools } from './tool-policy.ts';

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
  it('has no group named like a property of every object', () => {
    const config = {
      tools: { profile: 'minimal' as const, allow: ['group:constructor'], deny: ['group:valueOf'.toLowerCase(), 'group:constructor'] },
    };
    expect(names(config, 'rpc')).toEqual(['read', 'write']);
  });

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

  it('adds allowed tools, by name or group, and removes denied ones, whatever else allows them', () => {
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

  it.each(['v1', 'webhook', 'mcp', 'background'] as const)(
    '%s gets no tool that writes or reaches out unless it is named for that origin',
    (origin) => {
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
      // The origin limits the agent's policy, it does not widen it.
      expect(names({ tools: { profile: 'none' }, originTools: { [origin]: ['write'] } }, origin)).toEqual([]);
      expect(names({ tools: { profile: 'full', deny: ['write'] }, originTools: { [origin]: ['write'] } }, origin)).toEqual(['read', 'memory_search']);
    },
  );

  it.each([
    [['mcp__files--*'], ['mcp__files--list', 'mcp__files--read_file']],
    [['mcp__files--list'], ['mcp__files--list']],
    [['group:mcp'], ['mcp__files--list', 'mcp__files--read_file', 'mcp__Mail--send']],
    [
      ['mcp__Mail--*', 'r*'],
      ['mcp__Mail--send', 'read'],
    ],
    [
      ['group:files', 'group:shell'],
      ['read', 'write', 'exec'],
    ],
    [['*files*'], undefined],
    [['group:mcp*'], undefined],
    [['mcp__files--list!'], undefined],
  ] as const)('%j means %j', (patterns, meant) => {
    const list = [...all, tool('mcp__files--list', 'read'), tool('mcp__files--read_file', 'read'), tool('mcp__Mail--send', 'outward')];
    const allowing = AgentConfig.safeParse({ tools: { profile: 'none', allow: patterns } });
    if (meant === undefined) {
      expect(allowing.error?.issues[0]?.message).toMatch(/^expected a tool name/);
      return;
    }
    const config = agent({ tools: { profile: 'none', allow: [...patterns] } });
    expect(new Set(selectTools(list, config, 'rpc').map((each) => each.name))).toEqual(new Set(meant));
    const denying = agent({ tools: { profile: 'full', deny: [...patterns], discovery: { mode: 'never' } } });
    expect(selectTools(list, denying, 'rpc').map((each) => each.name)).toEqual(
      list.map((each) => each.name).filter((name) => !(meant as readonly string[]).includes(name)),
    );
  });

  it('grants a background turn the authority of the turn that started its task, and the origin alone none', () => {
    expect(authorityOf({ origin: 'background', background: { chain: 1, begunBy: 'mcp' } })).toBe('mcp');
    expect(authorityOf({ origin: 'background', background: { chain: 1, begunBy: 'rpc' } })).toBe('rpc');
    expect(authorityOf({ origin: 'api', background: { chain: 0 } })).toBe('api');
    expect(authorityOf({ origin: 'background' })).toBe('background');
    expect(refuseTool(tool('exec', 'write'), agent({ tools: { profile: 'full' } }), 'background')).toBe('origin');
  });

  it('offers the list of background tasks only to turns that can have some', () => {
    const list = [tool('background_tasks', 'read'), { ...tool('exec', 'write'), promotable: true }];
    const offered = (config: AgentConfigInput) => selectTools(list, agent(config), 'rpc').map((each) => each.name);
    expect(offered({ tools: { profile: 'coding' } })).toEqual(['background_tasks', 'exec']);
    expect(offered({ tools: { profile: 'minimal' } })).toEqual([]);
    expect(offered({ tools: { profile: 'coding', deny: ['background_tasks'] } })).toEqual(['exec']);
    expect(offered({ tools: { profile: 'coding' }, background: { afterMs: 0 } })).toEqual(['exec']);
    // Completions of /v1 store no messages, so there would be nothing to return to.
    const named = agent({ tools: { profile: 'coding' }, originTools: { v1: ['exec'], mcp: ['exec'] } });
    expect(selectTools(list, named, 'v1').map(({ name }) => name)).toEqual(['exec']);
    expect(selectTools(list, named, 'mcp').map(({ name }) => name)).toEqual(['background_tasks', 'exec']);
  });

  it('reports the reason', () => {
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
