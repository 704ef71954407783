import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { silentLog } from '../../../../kernel/log.ts';
import { SpeechFiles } from './speech-files.ts';

test('an error with the files of one agent neither ends nor delays the removal of others', async () => {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-speech-'));
  const agents = ['first', 'second'].map((id) => ({ id, workspaceDir: join(base, id) }));
  const filesOf = (id: string) => readdirSync(join(base, id, 'media/tts'));
  const old = Date.now() / 1000 - 86_400;
  for (const { id, workspaceDir } of agents) {
    mkdirSync(join(workspaceDir, 'media/tts'), { recursive: true });
    for (const name of ['tts-00000001.mp3', 'tts-00000002.mp3']) {
      writeFileSync(join(workspaceDir, 'media/tts', name), id);
      utimesSync(join(workspaceDir, 'media/tts', name), old, old);
    }
  }
  const clock = createStepClock(Date.now());
  let failures = 1;
  const forget = async () => {
    failures -= 1;
    if (failures >= 0) throw new Error('disk full');
  };
  using files = new SpeechFiles({
    clock,
    log: silentLog,
    agents: { list: () => agents },
    capacity: { assertCapacity: async () => {} },
    taints: { mark: async () => {}, forget },
  });
  files.schedule(60_000);
  clock.advance(60_000);
  await expect.poll(() => filesOf('second')).toEqual([]);
  expect(filesOf('first')).toHaveLength(1);
  await expect
    .poll(() => {
      clock.advance(600_000);
      return filesOf('first');
    })
    .toEqual([]);
  rmSync(base, { recursive: true });
});
