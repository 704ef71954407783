import { describe, expect, test } from 'vitest';
import { type Asked, checkRequest } from './checks.ts';

const asked: Asked = { method: 'tool.invoke', tool: 'web_fetch' };

/** Each combination of what holds; what a check did not hold is what the answer says, and nothing behind it was asked. */
const combinations = Array.from({ length: 16 }, (_, bits) => ({
  lease: (bits & 8) === 0,
  denylist: (bits & 4) === 0,
  origin: (bits & 2) === 0,
  capability: (bits & 1) === 0,
}));

describe('the checks of a call', () => {
  test.each(combinations)('lease $lease, denylist $denylist, origin $origin, capability $capability: the first that fails decides', async (holds) => {
    const reached: string[] = [];
    const look = <T>(name: string, value: T): T => {
      reached.push(name);
      return value;
    };
    const verdict = await checkRequest(
      {
        holderOf: async () => look('lease', holds.lease ? 'script' : undefined),
        isDenied: () => look('denylist', !holds.denylist),
        refuseOrigin: () => look('origin', holds.origin ? undefined : 'Not from this origin'),
        needs: () => 'orch:web',
        has: () => look('capability', holds.capability),
      },
      'bearer',
      asked,
    );
    const order = ['lease', 'denylist', 'origin', 'capability'] as const;
    const failing = order.find((name) => !holds[name]);
    expect(reached).toEqual(failing === undefined ? order : order.slice(0, order.indexOf(failing) + 1));
    if (failing === undefined) expect(verdict).toEqual({ allowed: true, holder: 'script', capability: 'orch:web' });
    else expect(verdict).toMatchObject({ allowed: false, check: failing, error: { code: 'denied' } });
  });

  test('what nothing is said about is not served', async () => {
    const verdict = await checkRequest(
      { holderOf: async () => 'script', isDenied: () => false, refuseOrigin: () => undefined, needs: () => undefined, has: () => true },
      'bearer',
      { method: 'tool.invoke', tool: 'sudo' },
    );
    expect(verdict).toMatchObject({ allowed: false, check: 'capability', error: { message: 'Capability denied: there is none for "sudo"' } });
  });
});
