import { AgentConfig, type AgentConfigInput, ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { expect, test } from 'vitest';
import { testModel } from '../../../../runtime/testing.ts';
import type { Tool, ToolRisk } from '../../../../runtime/tool.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import { createPreparation } from './preparation.ts';

function tool(name: string, risk: ToolRisk): Tool {
  return { name, risk, description: name, args: z.strictObject({}), effect: 'pure', timeoutMs: 1000, run: async () => ({ content: '' }) };
}
const tools = [tool('read', 'read'), tool('write', 'write'), tool('skill', 'read')];

const agentOf = (id: string, config: AgentConfigInput): Agent => ({
  id,
  config: AgentConfig.parse(config),
  source: 'file',
  suspended: false,
  isDefault: false,
  workspaceDir: '/nonexistent',
});

const full = agentOf('full', { tools: { profile: 'full' } });
const reader = agentOf('reader', { tools: { profile: 'none', allow: ['read'] } });

const { toolsFor, systemPrompt, historyCapacity, capacityOf } = createPreparation({
  clock: createStepClock(),
  agents: { find: (id) => [full, reader].find((agent) => agent.id === id) },
  models: { resolve: () => testModel, defaultModel: () => testModel },
  toolsOf: () => tools,
  skills: { promptPart: () => 'Skills: sing' },
  promptFiles: (_agent, origin) => (origin === 'rpc' ? 'Own file' : 'Shared file'),
});
const names = (...args: Parameters<typeof toolsFor>) => toolsFor(...args).map(({ name }) => name);

test('tools are what agent, origin, work and requester all allow', () => {
  expect(names(full, 'rpc')).toEqual(['read', 'write', 'skill']);
  expect(names(full, 'v1')).toEqual(['read', 'skill']);
  expect(names(full, 'rpc', ToolPolicy.parse({ profile: 'full', deny: ['read'] }))).toEqual(['write', 'skill']);
  expect(names(full, 'rpc', undefined, { policies: [], agents: ['reader'] })).toEqual(['read']);
});

test('the prompt has the files of its origin and the skills, a light one has neither', () => {
  const own = systemPrompt(full, tools, { origin: 'rpc', attended: true }).join('\n');
  expect(own).toContain('Own file');
  expect(own).toContain('Skills: sing');
  expect(systemPrompt(full, tools, { origin: 'v1', attended: true }).join('\n')).toContain('Shared file');
  const light = systemPrompt(full, tools, { origin: 'rpc', attended: false, light: true }).join('\n');
  expect(light).not.toMatch(/Own file|Skills/);
  expect(light).toContain('Nobody is there');
});

test('history may have what prompt, tools and answer leave of the window', () => {
  const system = systemPrompt(full, tools, { origin: 'rpc', attended: true });
  const capacity = historyCapacity(full, [testModel], tools, system);
  expect(capacity).toBeGreaterThan(20_000);
  expect(capacity).toBeLessThan(testModel.contextWindow - testModel.maxTokens);
  expect(capacityOf(full)).toBe(capacity);
  expect(historyCapacity(full, [], tools, system)).toBe(0);
});
