import { expect, test } from 'vitest';
import { proveSkillVetting } from './r35-skill-vetting.ts';

test('malicious skills are neither written nor loaded, and honest ones are', async () => {
  const report = await proveSkillVetting({ each: 4 });
  expect(report.wrong).toEqual([]);
  expect(report.blocked).toEqual([]);
  expect(report.attempts).toBeGreaterThan(60);
});

test('a build that checks other bytes than it writes is caught', async () => {
  const { wrong } = await proveSkillVetting({ each: 12, submits: true, broken: 'scans-what-is-shown' });
  expect(wrong.filter((line) => line.endsWith(': written'))).not.toEqual([]);
});
