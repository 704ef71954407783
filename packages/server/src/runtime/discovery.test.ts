import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../kernel/log.ts';
import { createFence } from './fence.ts';
import { createRunTurn } from './run-turn.ts';
import { createScriptedModels, type ScriptedAnswer, turnInput } from './testing.ts';
import { createTextRank } from './text-rank.ts';
import { selectTools } from './tool-policy.ts';
import type { Tool } from './tool.ts';

function tool(name: string, over: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `Does ${name}.`,
    args: z.strictObject({ what: z.string().optional() }),
    risk: 'read',
    effect: 'pure',
    timeoutMs: 1000,
    run: async () => ({ content: `${name} ran` }),
    ...over,
  };
}
const served = (server: string, name: string, description: string) => tool(`mcp__${server}--${name}`, { description, source: `mcp:${server}` });

/** 200 tools of four servers; three of them have a meaning. */
const many: readonly Tool[] = [
  tool('read'),
  ...Array.from({ length: 197 }, (_, index) =>
    served(['files', 'mail', 'maps', 'shop'][index % 4] ?? '', `thing_${index}`, `Handles item number ${index}.`),
  ),
  served('mail', 'sendMessage', 'Sends an e-mail to a recipient.'),
  served('maps', 'find_route', 'Plans a way between two cities, by train or on foot.'),
  served('shop', 'refund', 'Pays an order back.'),
];

function begin(config: AgentConfigInput, ...script: ScriptedAnswer[]) {
  const { models, asked } = createScriptedModels(...script);
  const clock = createStepClock();
  const run = createRunTurn({ models, clock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog });
  const agent = AgentConfig.parse(config);
  const tools = selectTools(many, agent, 'rpc');
  const offered = () => asked.map(({ request }) => request.tools.map(({ name }) => name));
  return { turn: run({ ...turnInput({ tools }), agent }), offered, tools };
}
const full = { tools: { profile: 'full' } } as const;
const results = (messages: readonly { readonly role: string; readonly content: string }[]) =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => content);

describe('with 200 tools', () => {
  it('the model sees the groups, finds tools by keywords and calls them in the same turn', async () => {
    const { turn, offered, tools } = begin(
      full,
      { calls: [['discover_tools', { query: 'plan a route by train', limit: 1 }]] },
      { calls: [['mcp__maps--find_route', {}]] },
      { text: 'Take the 9:04.' },
    );
    expect(tools.at(-1)?.description).toContain('files (50), mail (50), maps (50), shop (50)');
    const { messages, finishReason } = await turn;
    expect(finishReason).toBe('stop');
    expect(results(messages)).toEqual([expect.stringContaining('Loaded: mcp__maps--find_route.'), 'mcp__maps--find_route ran']);
    expect(offered()).toEqual([
      ['read', 'discover_tools'],
      ['read', 'discover_tools', 'mcp__maps--find_route'],
      ['read', 'discover_tools', 'mcp__maps--find_route'],
    ]);
  });

  it('found tools stay for that turn only', async () => {
    const { turn } = begin(full, { calls: [['discover_tools', { query: 'refund' }]] }, { text: 'ok' });
    await turn;
    const next = begin(full, { text: 'ok' });
    await next.turn;
    expect(next.offered()).toEqual([['read', 'discover_tools']]);
  });

  it('a tool that is called without a search runs, and is listed from then on', async () => {
    const { turn, offered } = begin(full, { calls: [['mcp__shop--refund', {}]] }, { text: 'done' });
    expect(results((await turn).messages)).toEqual(['mcp__shop--refund ran']);
    expect(offered()[1]).toEqual(['read', 'discover_tools', 'mcp__shop--refund']);
  });

  it('a tool that the policy removes is neither found nor run', async () => {
    const config: AgentConfigInput = { tools: { profile: 'full', deny: ['mcp__mail--*'] } };
    const { turn, tools } = begin(
      config,
      {
        calls: [
          ['discover_tools', { query: 'send an e-mail', limit: 20 }],
          ['discover_tools', { query: 'mcp__mail--sendMessage' }],
          ['mcp__mail--sendMessage', {}],
        ],
      },
      { text: 'ok' },
    );
    expect(tools.at(-1)?.description).not.toContain('mail');
    const [found = '', exact = '', called = ''] = results((await turn).messages);
    expect(`${found}${exact}`).not.toContain('mail');
    expect(called).toContain('There is no tool "mcp__mail--sendMessage"');
  });

  it.each([
    [{ mode: 'never' }, 201],
    [{ mode: 'auto', above: 500 }, 201],
    [{ mode: 'auto' }, 2],
    [{ mode: 'always' }, 2],
  ] as const)('%j offers %i tools', (discovery, count) => {
    expect(selectTools(many, AgentConfig.parse({ tools: { profile: 'full', discovery } }), 'rpc')).toHaveLength(count);
  });

  it('denying discover_tools offers all tools', () => {
    expect(selectTools(many, AgentConfig.parse({ tools: { profile: 'full', deny: ['discover_tools'] } }), 'rpc')).toHaveLength(201);
  });

  it('a list without server tools is never shortened', () => {
    const own = Array.from({ length: 60 }, (_, index) => tool(`own_${index}`));
    const agent = AgentConfig.parse({ tools: { profile: 'full', discovery: { mode: 'always' } } });
    expect(selectTools(own, agent, 'rpc')).toHaveLength(60);
  });
});

describe('ranking', () => {
  const rank = createTextRank([
    'list_files Lists the files of a folder',
    'readFile Reads one file',
    'send_mail Sends a mail',
    'weather Shows the weather',
  ]);
  it.each([
    ['file', [1, 0]],
    ['list files', [0, 1]],
    ['mails', [2]],
    ['read', [1]],
    ['nothing of this', [0]],
    ['', []],
    ['!!!', []],
  ])('%j finds %j', (query, found) => expect(rank(query, 5)).toEqual(found));

  it('keeps to the limit', () => expect(rank('file', 1)).toHaveLength(1));
});
