import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { AppError, toAppError } from '../kernel/app-error.ts';
import { ModelError } from '../llm/model.ts';
import { endOfFailedCall } from '../runtime/turn-end.ts';

const imported = Object.assign(new Error('Cannot find module'), { code: 'ERR_MODULE_NOT_FOUND' });

test('a missing module or thread is reported as such, and work waits for the restart', async () => {
  const [started] = await once(new Worker(new URL('./no-such-part.ts', import.meta.url)), 'error');
  for (const cause of [imported, started]) {
    const thrown = toAppError(new AppError('payload_too_large', 'The payload is too large to read', { cause }));
    expect(thrown).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/A file of the program is missing.*restart it/) });
    const end = endOfFailedCall(new ModelError('server', 'the client failed', { cause }), { stopped: undefined, isSilent: false });
    expect(end).toMatchObject({ finishReason: 'provider_degraded', failure: { transient: true, message: expect.stringContaining('restart it') } });
  }
  expect(toAppError(new AppError('payload_too_large', 'The payload is too large to read')).code).toBe('payload_too_large');
});
