import { applyTemplate, writeTemplateFiles } from '@gatehouse/client/agent-template';
import { AgentConfig, contract } from '@gatehouse/contract';
import { type AgentTemplate, agentTemplates } from '@gatehouse/contract/agent-templates';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toolGroupNames } from '../../../runtime/tool-policy.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { webSearch: { provider: 'brave', apiKey: 'a-key-of-brave' } } });
});
afterAll(() => server[Symbol.asyncDispose]());

const named = agentTemplates.map((template) => [template.id, template] as const);
const templateOf = (id: string): AgentTemplate => agentTemplates.find((one) => one.id === id) ?? expect.unreachable(id);
const patternsOf = ({ tools, heartbeat }: AgentTemplate['config']) =>
  [tools, heartbeat?.toolPolicy].flatMap((policy) => [...(policy?.allow ?? []), ...(policy?.deny ?? [])]);

async function make(template: AgentTemplate, agentId: string) {
  await server.client.call('agents.create', { agentId, config: { ...template.config, model: 'mock/mock-fast' } });
  return writeTemplateFiles(server.client, { agentId, template, all: agentTemplates });
}

describe.each(named)('the template %s', (id, template) => {
  test('is valid, and keeps to safe limits', () => {
    expect(contract['agents.create'].params.parse({ agentId: id, config: template.config })).toBeDefined();
    const config = AgentConfig.parse(template.config);
    // Text from outside never decides what runs, and no model is named that an installation may not have.
    expect(config).toMatchObject({ approvals: { trustWorkspace: false, unattended: 'wait' }, originTools: {}, exec: { env: [] } });
    expect(config).not.toHaveProperty('model');
    expect(config.tools.profile).not.toBe('full');
    // Caps in dollars would refuse models whose price is not known.
    expect(config.budgets).toEqual({
      perTurnTokens: expect.any(Number),
      perHourTokens: expect.any(Number),
      perDayTokens: expect.any(Number),
    });
    const { perTurnTokens, perHourTokens = 0, perDayTokens = 0 } = config.budgets;
    expect([perTurnTokens, perHourTokens, perDayTokens]).toEqual([perTurnTokens, perHourTokens, perDayTokens].toSorted((a, b) => a - b));
    expect(config.memory.limits.maxEntries).toBeGreaterThan(0);
    for (const text of Object.values(template.files)) expect(text).toMatch(/^# .+\n\n[^]+\n$/);
  });

  test('names tools and groups that exist', async () => {
    const { tools } = await server.client.call('tools.list', {});
    const names = tools.map(({ name }) => name);
    for (const pattern of patternsOf(template.config)) {
      if (pattern.startsWith('group:')) expect(toolGroupNames).toContain(pattern.slice('group:'.length));
      else expect(names).toContain(pattern);
    }
  });

  test('makes an agent whose turn has its prompt and its tools', async () => {
    const { client, provider } = server;
    expect(await make(template, id)).toEqual({ dir: expect.stringContaining(id), written: ['AGENTS.md', 'ROLE.md'], kept: [] });
    const { tools } = await client.call('tools.list', { agentId: id, origin: 'rpc' });
    const allowed = tools.filter((tool) => tool.allowed).map(({ name }) => name);
    expect(allowed).toEqual(expect.arrayContaining(['read', 'ls', 'memory_search']));
    expect(allowed.includes('exec')).toBe(id === 'coder');

    provider.queue({ toolCalls: [{ id: 'c1', name: 'ls', arguments: '{"path":"."}' }] }, { text: 'Done.' });
    const answer = await client.call('agent.execute', { agentId: id, message: 'What is in your folder?', sessionKey: `ada:${id}` });
    expect(answer).toMatchObject({ response: 'Done.', finishReason: 'stop' });
    const [first, second] = provider.requests.slice(-2).map(({ body }) => JSON.stringify(body));
    expect(first).toContain(JSON.stringify(template.files['ROLE.md'] ?? '').slice(20, 120));
    // Only some kinds of agents begin with getting to know their user.
    expect(first?.includes('This workspace is new')).toBe(template.introduces);
    expect(second).toContain('documents');
  });
});

test('a file that somebody changed stays, whatever template is applied; files of another template are replaced', async () => {
  const { client } = server;
  const agentId = 'moved';
  await make(templateOf('researcher'), agentId);
  const own = '# Role\n\nMine.\n';
  await client.call('workspace.writeFile', { agentId, filePath: 'ROLE.md', content: own });
  const coder = templateOf('coder');
  const apply = () => applyTemplate(client, { agentId, template: coder, all: agentTemplates, config: { maxSteps: 7 } });
  expect(await apply()).toMatchObject({ written: ['AGENTS.md'], kept: ['ROLE.md'] });
  expect(await apply()).toMatchObject({ written: [], kept: ['ROLE.md'] });
  expect((await client.call('workspace.readFile', { agentId, filePath: 'ROLE.md' })).content).toBe(own);
  expect((await client.call('workspace.readFile', { agentId, filePath: 'AGENTS.md' })).content).toBe(coder.files['AGENTS.md']);
  expect((await client.call('agents.get', { agentId })).config).toMatchObject({
    model: 'mock/mock-fast',
    maxSteps: 7,
    tools: { allow: coder.config.tools?.allow },
  });
});

test('a template that introduces itself keeps the first conversation; one that does not never removes a changed BOOTSTRAP.md', async () => {
  const { client } = server;
  const present = async (agentId: string) =>
    (await client.call('workspace.status', { agentId })).files.find(({ name }) => name === 'BOOTSTRAP.md')?.present;
  await make(templateOf('assistant'), 'greeter');
  expect(await present('greeter')).toBe(true);
  await client.call('agents.create', { agentId: 'special', config: { model: 'mock/mock-fast' } });
  await client.call('workspace.init', { agentId: 'special' });
  await client.call('workspace.writeFile', { agentId: 'special', filePath: 'BOOTSTRAP.md', content: 'Say hello in French.\n' });
  await writeTemplateFiles(client, { agentId: 'special', template: templateOf('coder'), all: agentTemplates });
  expect(await present('special')).toBe(true);
});
