import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentConfig } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../../../../kernel/log.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import { createPromptFiles, promptFilesFor } from './prompt-files.ts';
import { hasName, isUntouched, saysNothing, templateOf } from './templates.ts';

let workspaceDir: string;
let agent: Agent;
beforeEach(() => {
  workspaceDir = mkdtempSync(join(tmpdir(), 'gatehouse-prompt-'));
  agent = { id: 'a', config: AgentConfig.parse({}), source: 'file', suspended: false, isDefault: true, workspaceDir };
});
afterEach(() => rmSync(workspaceDir, { recursive: true, force: true }));

it('reads once per second and agent, for all turns together, and returns the same object until something changed', async () => {
  const clock = createStepClock();
  const files = createPromptFiles({ clock, log: silentLog, hideSecrets: (text) => text });
  expect(files.promptFiles(agent)).toBeUndefined();
  writeFileSync(join(workspaceDir, 'SOUL.md'), 'One.');
  const first = files.refresh(agent);
  expect(first).toBeInstanceOf(Promise);
  expect(files.refresh(agent)).toBe(first);
  await first;
  const seen = files.promptFiles(agent);
  expect(seen?.text).toBe('# Files of your workspace\n\n## SOUL.md: who you are\nOne.');
  writeFileSync(join(workspaceDir, 'SOUL.md'), 'Two, and longer.');
  clock.advance(999);
  expect(files.refresh(agent)).toBeUndefined();
  expect(files.promptFiles(agent)).toBe(seen);
  clock.advance(1);
  await files.refresh(agent);
  const changed = files.promptFiles(agent);
  expect(changed?.text).toContain('Two, and longer.');
  clock.advance(1000);
  await files.refresh(agent);
  expect(files.promptFiles(agent)).toBe(changed);
  rmSync(workspaceDir, { recursive: true });
  files.changed(agent);
  await files.refresh(agent);
  expect(files.promptFiles(agent)).toBeUndefined();
});

it('reads nothing through a link, and shows USER.md to the origins of the owner alone', async () => {
  const files = createPromptFiles({ clock: createStepClock(), log: silentLog, hideSecrets: (text) => text });
  writeFileSync(join(workspaceDir, 'USER.md'), 'Private.');
  await files.refresh(agent);
  const found = files.promptFiles(agent);
  expect(['rpc', 'api', 'channel', 'background'].map((origin) => promptFilesFor(origin as 'rpc', found)?.includes('Private.'))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  for (const origin of ['v1', 'webhook', 'mcp', 'cron', 'heartbeat', 'subagent', 'graph'] as const) expect(promptFilesFor(origin, found)).toBe('');
});

it('recognizes an untouched template even when only its beginning is shown', async () => {
  agent = { ...agent, config: AgentConfig.parse({ workspace: { maxFileChars: 100 } }) };
  const files = createPromptFiles({ clock: createStepClock(), log: silentLog, hideSecrets: (text) => text });
  for (const name of ['SOUL.md', 'AGENTS.md', 'TOOLS.md'] as const) writeFileSync(join(workspaceDir, name), templateOf(name));
  await files.refresh(agent);
  expect(files.promptFiles(agent)).toBeUndefined();
});

it('recognizes an untouched template, and empty files', () => {
  const template = templateOf('SOUL.md');
  expect(isUntouched(template)).toBe(true);
  expect(isUntouched(`${template}- More.\n`)).toBe(false);
  expect(isUntouched('# Soul\n')).toBe(false);
  expect(saysNothing('# Checklist\n\n## More\n- \n* [ ]\n1.\n<!-- a\n comment -->\n')).toBe(true);
  expect(saysNothing('')).toBe(true);
  for (const text of ['# A\nword', '- [ ] task', '1. one', '<!-- open']) expect(saysNothing(text)).toBe(false);
  expect(saysNothing(templateOf('HEARTBEAT.md'))).toBe(true);
});

it.for([
  ['- Name: Ada', true],
  ['**Name:** Ada', true],
  ['# Identity\n\nname: Ada Lovelace', true],
  ['- Name:', false],
  ['- Name:\n- What you are: an agent', false],
  ['- Name: [your name]', false],
  ['- Name: <name>', false],
  ['- Name: TBD', false],
  ['Rename: Ada', false],
  ['', false],
] as const)('detects whether %j has a name', ([text, named]) => {
  expect(hasName(text)).toBe(named);
});
