import { expect, test } from 'vitest';
import { proveSkillVetting } from './r35-skill-vetting.ts';

test('malicious skills are neither written nor loaded, and honest ones are', async () => {
  const report = await proveSkillVetting({ each: 4 });
  expect(report.wrong).toEqual([]);
  expect(report.blocked).toEqual([]);
  expect(report.attempts).toBeGreaterThan(60);
});
