import { describe, expect, test } from 'vitest';
import { type Asked, checkRequest } from './checks.ts';

const asked: Asked = { method: 'tool.invoke', tool: 'web_fetch' };

/** All combinations of passing checks; the first failing check decides, and later ones must not run. */
const combinations = Array.from({ length: 16 }, (_, bits) => ({
  lease: (bits & 8) === 0,
  denylist: (bits & 4) === 0,
  origin: (bits & 2) === 0,
  capability: (bits & 1) === 0,
}));

describe('the checks of a call', () => {
  test.each(combinations)('lease $lease, denylist $denylist, origin $origin, capability $capability: the first that fails decides', (holds) => {
    const reached: string[] = [];
    const check = <T>(name: string, value: T): T => {
      reached.push(name);
      return value;
    };
    const verdict = checkRequest(
      check('lease', holds.lease)
        ? {
            isDenied: () => check('denylist', !holds.denylist),
            refuseOrigin: () => check('origin', holds.origin ? undefined : 'Not from this origin'),
            needs: () => 'orch:web',
            has: () => check('capability', holds.capability),
          }
        : undefined,
      asked,
    );
    const order = ['lease', 'denylist', 'origin', 'capability'] as const;
    const failing = order.find((name) => !holds[name]);
    expect(reached).toEqual(failing === undefined ? order : order.slice(0, order.indexOf(failing) + 1));
    if (failing === undefined) expect(verdict).toEqual({ allowed: true, capability: 'orch:web' });
    else expect(verdict).toMatchObject({ allowed: false, check: failing, error: { code: 'denied' } });
  });

  test('tools without a defined capability are not available', () => {
    const verdict = checkRequest(
      { isDenied: () => false, refuseOrigin: () => undefined, needs: () => undefined, has: () => true },
      { method: 'tool.invoke', tool: 'sudo' },
    );
    expect(verdict).toMatchObject({ allowed: false, check: 'capability', error: { message: 'Capability denied: none exists for "sudo"' } });
  });
});
