import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCommand } from '../../../../../../../tools/system-packages.mjs';
import { openTerminals, type Terminals } from './testing.ts';

const timeoutMs = 120_000;
const control = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

describe.skipIf(findCommand('bwrap') === undefined)('hostile output of a terminal session', { timeout: 180_000 }, () => {
  let terminals: Terminals;
  beforeAll(async () => {
    terminals = await openTerminals({ exec: { maxTerminalsPerAgent: 8 } });
  });
  afterAll(() => terminals?.[Symbol.asyncDispose]());
  const screenOf = async (id: string) => {
    const request = { after: undefined, waitMs: 0, signal: AbortSignal.timeout(timeoutMs) };
    return terminals.shell.screens.find(id)?.screen(request);
  };
  const print = (script: string, more: object = {}) => terminals.open(['sh', '-c', `${script}; cat`], { pattern: 'END', timeoutMs, ...more });

  it('reaches models and people as text only', async () => {
    const attacks = [
      '\\033]0;title\\007',
      '\\033]52;c;aGFjaw==\\007',
      '\\033]8;;https://evil.example\\007link\\033]8;;\\007',
      '\\033P+q544e\\033\\\\',
      '\\033[21t\\033[6n\\033[c',
      '\\302\\233[31m\\302\\2350;c1\\302\\234',
      '\\342\\200\\256reversed\\342\\201\\246',
      '\\033[?1049h\\033[?1049l',
      '<img src=x onerror=alert(1)>',
      '\\000\\001\\002\\177',
    ];
    const id = await print(`stty -echo; printf '${attacks.join('')}\\nEND\\n'`);
    const { content } = await terminals.use({ action: 'read', id, history: 100 });
    expect(content.replaceAll('\n', '')).not.toMatch(control);
    expect(content).toContain('<img src=x onerror=alert(1)>');
    const screen = await screenOf(id);
    for (const { text } of screen?.lines?.flat() ?? []) expect(text).not.toMatch(control);
    expect(JSON.stringify(screen?.lines)).toContain('<img src=x onerror=alert(1)>');
  });

  it('hides a secret also where the terminal wraps it, and never tears it apart', async () => {
    const id = await print(`printf '%35s' x; echo hunter2-hunter2; echo END`, { cols: 40, rows: 10 });
    const { content } = await terminals.use({ action: 'read', id });
    // The loop hides secrets in results: it finds those that are whole.
    expect(content).toContain('hunter2-hunter2');
    expect(JSON.stringify((await screenOf(id))?.lines)).toMatch(/\[REDACTED\]/);
    expect(JSON.stringify((await screenOf(id))?.lines)).not.toMatch(/hunt/);
  });

  it('is bounded, however much there is', async () => {
    const id = await print(`head -c 2000000 /dev/zero | tr '\\0' 'y'; printf 'e%20000s' '' | sed 's/ /\\xcc\\x81/g'; echo; echo END`);
    const { content } = await terminals.use({ action: 'read', id, history: 500 });
    expect(content.length).toBeLessThan(45_000);
    expect(JSON.stringify(await screenOf(id)).length).toBeLessThan(100_000);
    await terminals.use({ action: 'close', id });
  });

  it('does not hold the event loop, even with sequences that take the emulator very long', async () => {
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    // Each pair moves a screen of lines: 64 KB of them take half a minute. The jail has two sessions of it.
    const flood = `while :; do printf '\\033[2J\\033[999L%s' 1234567890; done`;
    const ids = [await terminals.open(['sh', '-c', flood], { timeoutMs: 500 }), await terminals.open(['yes'], { timeoutMs: 500 })];
    for (const id of ids) await terminals.shell.background.endOne(id);
    expect(terminals.shell.background.running().filter(({ id }) => ids.includes(id))).toEqual([]);
    delay.disable();
    // Emulated here, one slice of it would hold the loop for seconds.
    expect(delay.max / 1e6).toBeLessThan(2_000);
  });

  it('an expression that never ends is refused, and the session continues', async () => {
    const id = await print(`echo ${'a'.repeat(60)}b; echo END`);
    await terminals.use({ action: 'type', id, text: 'a'.repeat(40), timeoutMs: 500 });
    const slow = await terminals.use({ action: 'wait', id, pattern: '(a+)+$ ', timeoutMs });
    expect(slow.content).toContain('pattern: the expression takes too long on this screen');
    expect((await terminals.use({ action: 'read', id })).content).toContain('END');
  });
});
