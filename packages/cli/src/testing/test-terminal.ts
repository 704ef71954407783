import { PassThrough, Writable } from 'node:stream';
import xterm from '@xterm/headless';
import { expect } from 'vitest';

/** A terminal in memory: what a program writes is interpreted like by a real one. */
export function createTerminal({ columns = 80, rows = 30 }: { readonly columns?: number; readonly rows?: number } = {}) {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 5000, allowProposedApi: true });
  const raw = { on: false };
  let written = '';
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true as const,
    setRawMode(on: boolean) {
      raw.on = on;
    },
  });
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written += chunk.toString();
      terminal.write(chunk, done);
    },
  });
  const stdout = Object.assign(output, { isTTY: true as const, columns, rows });

  /** Everything on the screen and above it, line by line; lines that the terminal wrapped itself are marked. */
  function lines(): string[] {
    const { active } = terminal.buffer;
    return Array.from({ length: active.length }, (_, at) => {
      const line = active.getLine(at);
      return `${line?.isWrapped === true ? '(wrapped)' : ''}${line?.translateToString(true) ?? ''}`;
    });
  }
  const shown = () => lines().join('\n').trimEnd();
  return {
    stdin,
    stdout,
    raw,
    lines,
    shown,
    written: () => written,
    type: (text: string) => void stdin.write(text),
    paste: (text: string) => void stdin.write(`\u001b[200~${text}\u001b[201~`),
    resize(width: number, height: number) {
      stdout.columns = width;
      stdout.rows = height;
      terminal.resize(width, height);
      stdout.emit('resize');
    },
    sees: (text: string | RegExp, timeout = 20_000) => expect.poll(shown, { timeout }).toMatch(text),
    missing: (text: string | RegExp) => expect.poll(shown, { timeout: 20_000 }).not.toMatch(text),
  };
}

export type TestTerminal = ReturnType<typeof createTerminal>;
