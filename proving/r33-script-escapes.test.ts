import { expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { proveJailEscapes } from './r33-jail-escapes.ts';

const bubblewrap = findCommand('bwrap');

test.skipIf(bubblewrap === undefined)('a script of an agent reaches nothing outside of its jail, and misuses nothing that it is given', async () => {
  const report = await proveJailEscapes({
    asScripts: true,
    // On a machine that does other work too; a program that nothing ends has no end at all.
    graceMs: 20_000,
    only: [
      'reads the home of the daemon',
      'connects to this machine',
      'ends all it can',
      'writes errors without end',
      'asks for methods',
      'asks for tools',
      'forges a bearer',
      'leaves its bearer',
      'uses the bearer of an ended script',
      'uses its bearer after its end',
      'says who it is',
      'sends garbage',
      'opens connections without end',
      'takes the place of the socket',
      'still has the socket',
      'reads outside with a tool',
      'has a result written outside',
    ],
  });
  expect(report.wrong).toEqual([]);
  expect(report.programs).toBe(17);
});
