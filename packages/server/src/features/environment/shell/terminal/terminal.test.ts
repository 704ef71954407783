import { readdirSync, readFileSync } from 'node:fs';
import { createStepClock } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';
import { openTerminals, type Terminals } from './testing.ts';

const hasJail = findCommand('bwrap') !== undefined;
/** Waits are for what appears, never for a time: this only bounds a test that fails. */
const timeoutMs = 120_000;

const running = (word: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word);
    } catch {
      return false;
    }
  });

describe.skipIf(!hasJail)('a terminal session', { timeout: 180_000 }, () => {
  let terminals: Terminals;
  beforeAll(async () => {
    terminals = await openTerminals({ exec: { maxTerminalsPerAgent: 2 } });
  });
  afterAll(() => terminals[Symbol.asyncDispose]());
  const use = (args: object) => terminals.use(args);
  const type = async (id: string, text: string, pattern: string) =>
    (await use({ action: 'type', id, text, enter: true, pattern, timeoutMs })).content;

  it('is driven by typing, keys and waits, and shows its screen', async () => {
    const id = await terminals.open(['sh'], { pattern: '\\$ $', timeoutMs, cols: 60, rows: 10 });
    const answer = await use({ action: 'type', id, text: 'echo $((20+22)) on $(tty)', enter: true, pattern: '\\$ $', timeoutMs });
    expect(answer).toMatchObject({ outside: { source: 'command output', clean: true } });
    expect(answer.content).toMatch(
      /^\[term_[^:]*: running, 60x10, cursor on line 3 column 3; the pattern matched\]\n\$ echo .*\n42 on \/dev\/pts\/0\n\$ $/,
    );
    await use({ action: 'resize', id, cols: 100, rows: 30 });
    expect(await type(id, 'stty size', '\\d+ \\d+\\n')).toContain('\n30 100\n');
    await type(id, 'cat >/dev/null', 'cat >/dev/null\\n');
    expect((await use({ action: 'press', id, keys: ['ctrl+c'], pattern: '\\$ $', timeoutMs })).content).toContain('^C\n$ ');
    expect((await use({ action: 'press', id, keys: ['up', 'nope'] })).content).toContain('invalid_params: keys: there is no key "nope"');
    expect((await use({ action: 'wait', id, pattern: '(' })).content).toContain('invalid_params: pattern: expected a regular expression');
    const ended = await use({ action: 'type', id, text: 'exit 3', enter: true });
    expect(ended.isError).toBeUndefined();
    expect((await use({ action: 'wait', id, exit: true, timeoutMs })).content).toMatch(/: exit code 3, 100x30\]\n/);
    expect((await use({ action: 'type', id, text: 'x' })).content).toBe('conflict: The terminal session has ended: exit code 3');
  });

  it('does not take text from before the last input for the answer', async () => {
    const id = await terminals.open(['sh'], { pattern: '\\$ $', timeoutMs });
    const early = await use({ action: 'type', id, text: 'read line; echo done', enter: true, pattern: '^done', timeoutMs: 500 });
    expect(early.content).toContain('; not reached within 500 ms]');
    expect(await type(id, 'now', '^done')).toContain('\ndone\n');
    await use({ action: 'close', id });
  });

  it('belongs to its agent and owner, is limited per agent, and ends with everything it started', async () => {
    const mark = `sleep 86${process.pid}`;
    const id = await terminals.open(['sh', '-c', `echo $$; ${mark}; true`], { pattern: '\\d', timeoutMs });
    for (const other of [{ agentId: 'other' }, { principalId: 'token:eve' }])
      expect((await terminals.use({ action: 'read', id }, other)).content).toContain('not_found: No terminal session has the id');
    expect((await use({ action: 'list' })).content).toContain(`${id}: running, 80x24: sh -c`);
    const second = await terminals.open(['cat']);
    expect((await use({ action: 'open', argv: ['cat'] })).content).toContain('precondition_failed: This agent has 2 terminal sessions open');
    expect(terminals.shell.background.running().map((each) => [each.id, each.kind])).toEqual([
      [id, 'terminal'],
      [second, 'terminal'],
    ]);
    expect(running(mark.replace(' ', '\0'))).not.toEqual([]);
    expect((await use({ action: 'close', id })).content).toContain('ended by SIGKILL');
    expect(running(mark.replace(' ', '\0'))).toEqual([]);
    expect(terminals.shell.background.end({ agentId: 'default' })).toBe(1);
    await terminals.shell.background.endOne(second);
  });

  it('reports a program that does not exist', async () => {
    expect(await use({ action: 'open', argv: ['no-such-program'], pattern: 'x', timeoutMs })).toMatchObject({
      content: expect.stringContaining('exit code 127'),
      isError: true,
      traced: { errorKind: 'missing_dependency' },
    });
  });
});

describe.skipIf(!hasJail)('an idle terminal session', () => {
  it('is evicted, with an event and a record of the trace', { timeout: 60_000 }, async () => {
    const clock = createStepClock();
    await using terminals = await openTerminals({ clock, exec: { terminalIdleMs: 60_000 } });
    const id = await terminals.open(['cat']);
    for (let n = 0; n < 8; n += 1) {
      clock.advance(10_000);
      await terminals.use({ action: 'read', id });
    }
    expect(terminals.events).toEqual([]);
    for (let n = 0; n < 7; n += 1) clock.advance(10_000);
    expect(terminals.events).toEqual(['terminal.session_evicted']);
    expect(terminals.traced).toMatchObject([{ kind: 'background', endReason: 'evicted', refs: { terminalId: id }, facts: { tool: 'terminal' } }]);
    await terminals.use({ action: 'wait', id, exit: true, timeoutMs });
    expect((await terminals.use({ action: 'read', id })).content).toContain('ended by SIGKILL, because nobody used it');
  });
});
