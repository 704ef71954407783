import { expect } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { callTools } from '../../../../runtime/call-tools.ts';
import { createFence } from '../../../../runtime/fence.ts';
import { turnInput } from '../../../../runtime/testing.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { FileTaints } from '../api.ts';
import { createExclusive } from './exclusive.ts';
import { createSearch } from '../search/search.ts';
import { createWorkspaceTools } from './tools.ts';

/** Treats every file as unknown. */
export const allClean: FileTaints = {
  isTainted: async () => false,
  isTaintedBelow: async () => false,
  mark: async () => {},
  forget: async () => {},
  committed: async () => {},
  isRepositoryTainted: async () => false,
  beginCommand: async () => ({ isClean: () => true, taint: async () => {}, end: async () => {} }),
};

/** The tools of workspaces, for tests that need no server. */
export function testWorkspaceTools(): readonly Tool[] {
  return createWorkspaceTools({
    exclusive: createExclusive(),
    capacity: { assertCapacity: async () => {} },
    search: createSearch(systemClock),
    taints: allClean,
    changed() {},
  });
}

/** Calls tools as the turn loop does; shows a fenced result without its fence. */
export function createToolCaller(workspaceDir: () => string) {
  const tools = testWorkspaceTools();
  return async (name: string, args: unknown) => {
    const input = turnInput({ tools, workspaceDir: workspaceDir(), agent: { tools: { profile: 'coding' } } });
    const [result] = await callTools(
      { clock: systemClock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog },
      { input, signal: input.signal, beforeOnce: async () => {} },
      [{ id: 'c', name, arguments: JSON.stringify(args) }],
    );
    if (result?.role !== 'tool') expect.fail('no result');
    const fenced = /^<<<UNTRUSTED-TEXT [0-9a-f]{32} provenance="clean" source="([^"]*)">>>\n(.*)\n<<<END-UNTRUSTED-TEXT [0-9a-f]{32}>>>$/s.exec(
      result.content,
    );
    return { content: fenced?.[2] ?? result.content, source: fenced?.[1], failed: result.isError === true };
  };
}

/** Paths that must not resolve (reliability D5); each call with one of them must fail like one with a missing file. */
export const hostilePaths: readonly string[] = [
  '..',
  '../',
  '../secret.txt',
  '../../secret.txt',
  'notes/../../secret.txt',
  'notes/..',
  'notes/./../..',
  './../x',
  '/etc/passwd',
  '//etc/passwd',
  '/proc/self/environ',
  '~',
  '~/x',
  'notes//a.txt',
  'notes/a.txt/',
  'notes/a.txt/.',
  'notes/a.txt/x',
  '..\\secret.txt',
  'notes\\a.txt',
  'C:\\Windows\\win.ini',
  'C:/Windows/win.ini',
  '\\\\server\\share',
  'file:///etc/passwd',
  'a.txt::$DATA',
  '%2e%2e/secret.txt',
  '%2e%2e%2fsecret.txt',
  '..%2fsecret.txt',
  '%252e%252e%252fsecret.txt',
  '..%5csecret.txt',
  'notes%2fa.txt',
  'a%00.txt',
  '%u002e%u002e/x',
  '.%2e/x',
  'a\0.txt',
  'notes/a.txt\0.png',
  'a\n.txt',
  'a\r.txt',
  'a\u007f',
  '\u0085x',
  '．．/secret.txt',
  '．．／secret.txt',
  '‥/secret.txt',
  'notes／a.txt',
  '..\u2215secret\u200b',
  '..＼secret',
  'a\u202etxt.exe',
  '\ufeffa.txt',
  'zero\u200bwidth',
  'soft\u00adhyphen',
  'CON',
  'con.txt',
  'NUL',
  'aux.json',
  'COM1',
  'notes/prn',
  'ＣＯＮ',
  'trailing.',
  'trailing ',
  'notes. /a.txt',
  'e\u0301.txt',
  'x'.repeat(256),
  'ü'.repeat(128),
  `${'d/'.repeat(40)}x`,
  `${'long/'.repeat(300)}x`,
  'link.txt',
  'inner-link.txt',
  'linked/secret.txt',
  'hard.txt',
  'fifo',
];
