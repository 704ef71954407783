import { expect, test } from 'vitest';
import { proveDoctorRuns } from './doctor-runs.ts';

test('the checks of doctor end with a report where they wait for nothing but a timer, and a build without it is caught', async () => {
  const [healthy, broken] = await Promise.all([
    proveDoctorRuns({ runs: 1, atOnce: 1, broken: ['pausing-doctor'] }),
    proveDoctorRuns({ runs: 1, atOnce: 1, broken: ['pausing-doctor', 'no-keep-alive'] }),
  ]);
  expect(healthy.wrong).toEqual([]);
  expect(broken.wrong).toEqual([expect.stringContaining('ended with code 13')]);
});
