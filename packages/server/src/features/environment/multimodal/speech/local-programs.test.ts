import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../kernel/clock.ts';
import { findProgram } from '../../../../kernel/find-program.ts';
import { type Jail, openJail } from '../../../../kernel/jail.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { sniff } from '../sniff.ts';
import { estimateSeconds } from './duration.ts';
import { createLocalPrograms } from './local-programs.ts';

const { signal } = new AbortController();
const missing = ['espeak-ng', 'ffmpeg', 'bwrap'].filter((name) => findProgram(name) === undefined);
const spoken = { text: 'Good morning. It is seven o’clock.', voice: 'en', format: 'wav', speed: undefined, timeoutMs: 30_000, signal } as const;

describe.skipIf(missing.length > 0)(`espeak-ng and ffmpeg in the jail${missing.length > 0 ? ` (not installed: ${missing.join(', ')})` : ''}`, () => {
  let jail: Jail;
  beforeAll(async () => {
    jail = await openJail({ clock: systemClock, log: silentLog });
  });
  afterAll(() => jail[Symbol.asyncDispose]());
  const programs = () => createLocalPrograms({ clock: systemClock, jail: async () => jail });

  test('speak, and convert to what chats take', async () => {
    const wav = await programs().speak(spoken);
    expect(await sniff(wav)).toEqual({ mimeType: 'audio/wav', extension: 'wav' });
    const seconds = estimateSeconds(wav, 'audio/wav');
    expect(seconds).toBeGreaterThan(1);
    for (const [format, mimeType] of [
      ['opus', 'audio/ogg'],
      ['mp3', 'audio/mpeg'],
    ] as const) {
      const sound = await programs().convert(wav, format, signal);
      expect((await sniff(sound))?.mimeType).toBe(mimeType);
      expect(sound.length).toBeLessThan(wav.length / 3);
      if (format === 'opus') expect(Math.abs(estimateSeconds(sound, mimeType) - seconds)).toBeLessThan(0.1);
    }
  });

  test('make videos whose kind and length are read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-video-'));
    try {
      for (const [name, mimeType] of [
        ['film.mp4', 'video/mp4'],
        ['film.webm', 'video/webm'],
      ] as const) {
        const file = join(folder, name);
        execFileSync(findProgram('ffmpeg') ?? '', ['-loglevel', 'error', '-f', 'lavfi', '-i', 'testsrc=size=128x96:rate=10:duration=2', file]);
        const film = readFileSync(file);
        expect((await sniff(film))?.mimeType).toBe(mimeType);
        if (name === 'film.mp4') expect(estimateSeconds(film, mimeType)).toBe(2);
        else expect(estimateSeconds(film, mimeType)).toBeGreaterThanOrEqual(2);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('refuse what is not sound, and stop when the call ends', async () => {
    await expect(programs().convert(Buffer.from('this is not sound'), 'opus', signal)).rejects.toMatchObject({ code: 'unavailable' });
    const controller = new AbortController();
    const speaking = programs().speak({ ...spoken, text: 'a long text. '.repeat(20_000), signal: controller.signal });
    controller.abort();
    await expect(speaking).rejects.toMatchObject({ kind: 'aborted' });
  });

  test('take a voice for an argument, not for an option or a file', async () => {
    await expect(programs().speak({ ...spoken, voice: '/etc/passwd' })).rejects.toMatchObject({ kind: 'server' });
  });
});

test('what is not installed is named', async () => {
  const programs = createLocalPrograms({ clock: systemClock, jail: () => Promise.reject(new Error('not needed')), find: () => undefined });
  expect(programs.canConvert()).toBe(false);
  await expect(programs.speak(spoken)).rejects.toMatchObject({ message: 'espeak-ng is not installed on this machine' });
  await expect(async () => programs.convert(Buffer.alloc(4), 'mp3', signal)).rejects.toMatchObject({ code: 'unavailable' });
});

test('a few programs run at once, the others wait for them', async () => {
  const ends: (() => void)[] = [];
  const jail: Jail = {
    unavailable: undefined,
    bounds: 'rlimits',
    run() {
      const ended = Promise.withResolvers<{ code: number; signal: null }>();
      const stdout = new PassThrough();
      stdout.write('sound');
      ends.push(() => setImmediate(() => ended.resolve({ code: 0, signal: null })));
      return { stdin: new PassThrough(), stdout, stderr: new PassThrough(), ended: ended.promise, kill: () => {} };
    },
    async [Symbol.asyncDispose]() {},
  };
  const programs = createLocalPrograms({ clock: systemClock, jail: async () => jail, find: (name) => `/usr/bin/${name}` });
  const leaving = new AbortController();
  const converted = Array.from({ length: 6 }, (_, at) => programs.convert(Buffer.alloc(4), 'mp3', at === 5 ? leaving.signal : signal));
  await expect.poll(() => ends.length).toBe(2);
  leaving.abort();
  await expect(converted[5]).rejects.toMatchObject({ code: 'cancelled' });
  expect(ends).toHaveLength(2);
  for (let at = 0; at < 5; at += 1) {
    await expect.poll(() => ends.length).toBeGreaterThan(at);
    ends[at]?.();
    await expect(converted[at]).resolves.toEqual(Buffer.from('sound'));
  }
  expect(ends).toHaveLength(5);
});
