import { expect, test } from 'vitest';
import { proveDoctorRuns } from './doctor-runs.ts';

test('the checks of doctor end with a report when they wait only for a timer', async () => {
  const { wrong } = await proveDoctorRuns({ runs: 1, atOnce: 1, broken: ['pausing-doctor'] });
  expect(wrong).toEqual([]);
});
