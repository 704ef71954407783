import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createLogger, type LoggerOptions } from './logger.ts';

function collect(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', redact: (line) => line, ...options, write: (line) => lines.push(line) });
  return { logger, lines };
}
const time = /^\d\d:\d\d:\d\d\.\d{3} /;

describe('the log on a terminal', () => {
  test('shows time, level, module, message and fields, values with spaces quoted', () => {
    const { logger, lines } = collect({ terminal: { color: false } });
    logger.log.module('gateway').warn({ status: 503, path: '/v1/models', reason: 'too many turns' }, 'Draining');
    expect(lines).toEqual([expect.stringMatching(time)]);
    expect(lines[0]?.replace(time, '')).toBe('warn  gateway: Draining status=503 path=/v1/models reason="too many turns"\n');
  });

  test('shows the stack of an error below its line', () => {
    const { logger, lines } = collect({ terminal: { color: false } });
    logger.log.error({ err: new Error('no space') }, 'Failed');
    const [head, first] = lines[0]?.split('\n') ?? [];
    expect(head).toMatch(/error Failed err="Error: no space"$/);
    expect(first).toBe('    Error: no space');
  });

  test('colors it only where the terminal has colors', () => {
    const { logger, lines } = collect({ terminal: { color: true } });
    logger.log.info({ port: 4766 }, 'Listening');
    expect(lines[0]).not.toBe(stripVTControlCharacters(lines[0] ?? ''));
    expect(stripVTControlCharacters(lines[0] ?? '')).toMatch(/info {2}Listening port=4766\n$/);
  });

  test('lets no text control the terminal', () => {
    const { logger, lines } = collect({ terminal: { color: false } });
    logger.log.info({ name: '\u001b[2J\u009b1A', key: 'a\nb' }, 'clear\u001b[2J');
    logger.log.error({ err: Object.assign(new Error('x'), { stack: 'Error: \u001b[31mred\n at y' }) }, 'Failed');
    expect(lines.join('')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(lines).toHaveLength(2);
  });

  test('cuts long values', () => {
    const { logger, lines } = collect({ terminal: { color: false } });
    logger.log.info({ applied: 'x'.repeat(500), next: 1 }, 'Migrated');
    expect(lines[0]).toMatch(/ applied=x{200}… next=1\n$/);
  });

  test('passes the redactor', () => {
    const { logger, lines } = collect({ terminal: { color: false }, redact: (line) => line.replaceAll('hunter2', '[REDACTED]') });
    logger.log.info({ password: 'hunter2' }, 'hunter2');
    expect(lines[0]).toMatch(/info {2}\[REDACTED\] password="\[REDACTED\]"\n$/);
  });
});

test('`format` decides against the kind of output', () => {
  const { logger, lines } = collect({ terminal: { color: false } });
  logger.reset({ level: 'info', format: 'json' });
  logger.log.info({}, 'a');
  logger.reset({ level: 'info' });
  logger.log.info({}, 'b');
  const piped = collect();
  piped.logger.log.info({}, 'c');
  piped.logger.reset({ level: 'info', format: 'text' });
  piped.logger.log.info({}, 'd');
  expect([...lines, ...piped.lines].map((line) => line.startsWith('{'))).toEqual([true, false, true, false]);
});
