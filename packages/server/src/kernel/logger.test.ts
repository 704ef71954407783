import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createLogger } from './logger.ts';
import { createRedactor } from './redact.ts';

function collect(options: Partial<Parameters<typeof createLogger>[0]> = {}) {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ level: 'info', redact: (line) => line, ...options, write: (line) => lines.push(JSON.parse(line)) });
  return { logger, lines };
}

describe('lines', () => {
  test('are JSON with level, time, module, fields and message', () => {
    const { logger, lines } = collect();
    logger.log.module('gateway').warn({ status: 503 }, 'Draining');
    expect(lines).toEqual([{ level: 'warn', time: expect.any(Number), module: 'gateway', status: 503, msg: 'Draining' }]);
  });

  test('include an error’s stack and cause', () => {
    const { logger, lines } = collect();
    logger.log.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'Failed');
    expect(lines[0]).toMatchObject({ error: { type: 'Error', message: expect.stringContaining('outer'), stack: expect.stringContaining('inner') } });
  });

  test('pass the redactor as a whole, so that no field can hide a secret', () => {
    const redactor = createRedactor(['correct horse battery']);
    const { logger, lines } = collect({ redact: redactor.redact });
    logger.log.info(
      { note: 'correct horse battery', nested: { list: ['x correct horse battery'] }, error: new Error('correct horse battery') },
      'correct horse battery',
    );
    expect(JSON.stringify(lines)).not.toContain('horse');
    expect(lines[0]).toMatchObject({ msg: '[REDACTED]' });
  });
});

describe('levels', () => {
  test('of a module override the common one, whichever is set later', () => {
    const { logger, lines } = collect({ modules: { turns: 'debug' } });
    const [turns, gateway] = [logger.log.module('turns'), logger.log.module('gateway')];
    turns.debug({}, 'a');
    gateway.debug({}, 'b');
    expect(logger.setLevel('error')).toBe(true);
    turns.debug({}, 'c');
    gateway.warn({}, 'd');
    logger.log.warn({}, 'e');
    expect(logger.setLevel('trace', 'gateway')).toBe(true);
    gateway.trace({}, 'f');
    expect(lines.map((line) => line['msg'])).toEqual(['a', 'c', 'f']);
    expect([gateway.enabled('trace'), turns.enabled('trace'), turns.enabled('debug')]).toEqual([true, false, true]);
  });

  test('apply to a module that asks for its log again, and other names are refused', () => {
    const { logger } = collect();
    logger.log.module('gateway');
    logger.setLevel('debug', 'gateway');
    expect(logger.log.module('gateway').enabled('debug')).toBe(true);
    expect(logger.setLevel('debug', 'gatway')).toBe(false);
    expect(logger.modules()).toEqual(['gateway']);
  });
});

test('a reset restores the levels of the start', () => {
  const { logger } = collect({ modules: { turns: 'trace' } });
  const [turns, gateway] = [logger.log.module('turns'), logger.log.module('gateway')];
  logger.setLevel('trace', 'gateway');
  logger.reset({ level: 'error', modules: { turns: 'debug' } });
  expect([turns.enabled('trace'), turns.enabled('debug'), gateway.enabled('info'), logger.log.enabled('info')]).toEqual([false, true, false, false]);
});

const source = new URL('./logger.ts', import.meta.url).href;

async function run(script: string, read: 'all' | 'nothing'): Promise<{ readonly code: unknown; readonly text: string }> {
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { createLogger } from ${JSON.stringify(source)};\nconst logger = createLogger({ level: 'info', redact: (line) => line });\n${script}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let text = '';
  if (read === 'all') child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  else child.stderr.destroy();
  const [code] = await once(child, 'close');
  return { code, text };
}

describe('standard error', () => {
  test('gets every line, in order, and the last one before the end', async () => {
    const { code, text } = await run(
      `for (let i = 0; i < 5000; i++) { logger.log.info({ i }, 'line'); if (i % 500 === 0) await new Promise((done) => setTimeout(done, 5)); }\nawait new Promise((done) => setTimeout(done, 100)); logger.log.fatal({ i: 5000 }, 'last'); logger.flush(); process.exit(3);`,
      'all',
    );
    expect(code).toBe(3);
    const numbers = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).i);
    expect(numbers).toEqual(Array.from({ length: 5001 }, (_, index) => index));
  });

  test('that nobody reads neither blocks the process nor fills its memory', async () => {
    const { code } = await run(
      `for (let i = 0; i < 200000; i++) logger.log.info({ i, pad: 'x'.repeat(100) }, 'line');\nlogger.flush(); if (process.memoryUsage().rss > 400e6) process.exit(9); process.exit(0);`,
      'nothing',
    );
    expect(code).toBe(0);
  });

  test('that is too slow reports how many lines were lost', async () => {
    const { text } = await run(`for (let i = 0; i < 100000; i++) logger.log.info({ i, pad: 'x'.repeat(100) }, 'line');\nlogger.flush();`, 'all');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const dropped = lines.filter((line) => typeof line.dropped === 'number').reduce((sum, line) => sum + line.dropped, 0);
    expect(dropped).toBeGreaterThan(0);
    expect(lines.filter((line) => line.msg === 'line').length + dropped).toBe(100_000);
  });
});
