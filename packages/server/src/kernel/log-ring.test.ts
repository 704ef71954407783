import { describe, expect, test } from 'vitest';
import { createLogger } from './logger.ts';

function create(firstLineId = 1) {
  return createLogger({ level: 'debug', redact: (line) => line.replaceAll('hunter2', '[REDACTED]'), write() {}, firstLineId });
}
const messages = (lines: readonly { readonly message: string }[]) => lines.map(({ message }) => message);

describe('the newest lines of the log', () => {
  test('are parsed and redacted, with growing ids', () => {
    const { log, recent } = create(7000);
    log.module('models').warn({ provider: 'local', key: 'hunter2' }, 'Refused');
    log.info({}, 'Started');
    expect(recent.newest({ limit: 10 })).toEqual([
      {
        id: 7000,
        timestamp: expect.any(Number),
        level: 'warn',
        module: 'models',
        message: 'Refused',
        fields: { provider: 'local', key: '[REDACTED]' },
      },
      { id: 7001, timestamp: expect.any(Number), level: 'info', message: 'Started', fields: {} },
    ]);
  });

  test('are filtered by level, module and id, the newest first to be kept', () => {
    const { log, recent } = create();
    for (const at of [1, 2, 3]) {
      log.module('a').debug({}, `debug ${at}`);
      log.module('b').error({}, `error ${at}`);
    }
    expect(messages(recent.newest({ limit: 10, level: 'warn' }))).toEqual(['error 1', 'error 2', 'error 3']);
    expect(messages(recent.newest({ limit: 2, module: 'a' }))).toEqual(['debug 2', 'debug 3']);
    expect(messages(recent.newest({ limit: 10, afterId: 4 }))).toEqual(['debug 3', 'error 3']);
  });

  test('are bounded in number, in size, and each in length', () => {
    const { log, recent } = create();
    for (let at = 0; at < 600; at += 1) log.info({}, `line ${at}`);
    expect(recent.newest({ limit: 1000 })).toHaveLength(500);
    log.info({ text: 'x'.repeat(100_000) }, 'y'.repeat(100_000));
    const [last] = recent.newest({ limit: 1 });
    expect(last).toMatchObject({ level: 'info', message: 'y'.repeat(2000), fields: { cutFrom: expect.any(Number) } });
    for (let at = 0; at < 100; at += 1) log.info({ text: 'z'.repeat(10_000) }, 'Large');
    expect(recent.newest({ limit: 1000 }).length).toBeLessThan(30);
  });

  test('reach a listener once each, which may log without an end', () => {
    const { log, recent } = create();
    const heard: (string | undefined)[] = [];
    const stop = recent.listen((read) => {
      heard.push(read()?.message);
      log.error({}, 'The listener failed');
    });
    log.info({}, 'a');
    log.info({}, 'b');
    stop();
    log.info({}, 'c');
    expect(heard).toEqual(['a', 'b']);
    expect(messages(recent.newest({ limit: 10 }))).toEqual(['a', 'The listener failed', 'b', 'The listener failed', 'c']);
  });
});
