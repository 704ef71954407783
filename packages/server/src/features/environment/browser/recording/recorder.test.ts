import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { CallContext } from '../../../../kernel/call-context.ts';
import { systemClock } from '../../../../kernel/clock.ts';
import { silentLog } from '../../../../kernel/log.ts';
import type { BrowserSession } from '../api.ts';
import { BrowserConfig } from '../config.ts';
import { Recorder } from './recorder.ts';
import { Recordings } from './recordings.ts';

const dir = mkdtempSync(join(tmpdir(), 'gatehouse-recorder-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('a step that ends after its agent was deleted leaves no recording', async () => {
  const recordings = new Recordings(dir);
  const recorder = new Recorder({
    clock: systemClock,
    processClock: systemClock,
    log: silentLog,
    config: { current: BrowserConfig().parse({}) },
    recordings,
    hideSecrets: (text) => text,
  });
  // Its tab is gone.
  const session = { agentId: 'default', isHeld: false, glance: () => Promise.reject(new Error('gone')) } as unknown as BrowserSession;
  const call: CallContext = {
    identity: { principalId: 'p', tokenId: 't', scopes: ['*'] },
    traceId: 'none',
    requestId: 'rq',
    signal: new AbortController().signal,
    transport: 'process',
  };
  const step = (work: () => Promise<object>) => recorder.step(session, call, { action: 'click' }, work);
  await step(async () => ({}));
  await recorder.settled();
  expect(existsSync(join(dir, 'default'))).toBe(true);
  const late = Promise.withResolvers<object>();
  const running = step(() => late.promise);
  await recorder.forget('default');
  expect(existsSync(join(dir, 'default'))).toBe(false);
  late.resolve({});
  await running;
  await recorder.settled();
  expect(existsSync(join(dir, 'default'))).toBe(false);
});
