import type { SpeechFormat } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { type FindProgram, findProgram } from '../../../../kernel/find-program.ts';
import { type Jail, jailHome, jailPath, type JailLimits } from '../../../../kernel/jail.ts';
import { createLanes } from '../../../../kernel/lane.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { SpeakHere } from '../providers/speech-vendors.ts';

export interface LocalPrograms {
  /** Speaks with espeak-ng. Fails with ModelError. */
  readonly speak: SpeakHere;
  /** Whether sound can be converted here. */
  canConvert(): boolean;
  /** Converts sound with ffmpeg. Fails with `unavailable` where it is not installed. */
  convert(sound: Uint8Array, format: SpeechFormat, signal: AbortSignal): Promise<Buffer>;
}

const limits: JailLimits = { memoryBytes: 512 * 1024 * 1024, processes: 32, cpuSeconds: 60, fileBytes: 64 * 1024 * 1024, openFiles: 64 };
const maxOutputBytes = 64 * 1024 * 1024;
const convertMs = 60_000;
/** Programs that run at once: each may use the memory of its limits and a processor. */
const maxRunning = 2;
const encoders: Readonly<Record<SpeechFormat, readonly string[]>> = {
  opus: ['-c:a', 'libopus', '-b:a', '32k', '-ac', '1', '-f', 'ogg'],
  mp3: ['-c:a', 'libmp3lame', '-b:a', '64k', '-ac', '1', '-f', 'mp3'],
  wav: ['-f', 'wav'],
  aac: ['-c:a', 'aac', '-b:a', '64k', '-f', 'adts'],
  flac: ['-f', 'flac'],
};

/** Programs of this machine for sound. They run in the jail, without files and network: what they decode comes from outside. */
export function createLocalPrograms({
  clock,
  jail,
  find = findProgram,
}: {
  readonly clock: Clock;
  readonly jail: () => Promise<Jail>;
  readonly find?: FindProgram;
}): LocalPrograms {
  const running = createLanes();
  let started = 0;

  async function run(argv: readonly [string, ...string[]], input: Uint8Array, timeoutMs: number, signal: AbortSignal): Promise<Buffer> {
    const inside = await jail();
    if (inside.unavailable !== undefined)
      throw new AppError('unavailable', `${argv[0]} runs only in a jail, which is not available here: ${inside.unavailable}`);
    started += 1;
    const one = { group: 'programs', groupLimit: maxRunning, principalId: 'speech', signal };
    using _slot = await running.acquire({ ...one, key: String(started) });
    const child = inside.run({
      argv,
      cwd: '/tmp',
      mounts: [],
      env: { PATH: jailPath, HOME: jailHome, LANG: 'C.UTF-8' },
      network: false,
      limits,
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let said = '';
    let over: AppError | undefined;
    const stop = (error: AppError) => {
      over ??= error;
      child.kill();
    };
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxOutputBytes) stop(new AppError('payload_too_large', `${argv[0]} made more than ${maxOutputBytes} bytes`));
      else chunks.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-300)));
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {});
    const onAbort = () => stop(new AppError('cancelled', 'The call was aborted'));
    signal.addEventListener('abort', onAbort, { once: true });
    const cancel = clock.after(timeoutMs, () => stop(new AppError('timeout', `${argv[0]} did not end within ${timeoutMs} ms`)));
    try {
      child.stdin.end(input);
      const { code } = await child.ended;
      if (over !== undefined) throw over;
      if (code !== 0 || bytes === 0)
        throw new AppError('unavailable', `${argv[0]} failed${said === '' ? '' : `: ${said.trim().split('\n').at(-1)}`}`);
      return Buffer.concat(chunks);
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  return {
    async speak({ text, voice, speed, timeoutMs, signal }) {
      if (find('espeak-ng') === undefined) throw new ModelError('network', 'espeak-ng is not installed on this machine');
      const argv = ['espeak-ng', '-v', voice, '-s', String(Math.round(175 * (speed ?? 1))), '--stdin', '--stdout'] as const;
      try {
        return withLength(await run([...argv], Buffer.from(text), timeoutMs, signal));
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        throw new ModelError(error.code === 'cancelled' ? 'aborted' : error.code === 'timeout' ? 'timeout' : 'server', error.message, {
          cause: error,
        });
      }
    },
    canConvert: () => find('ffmpeg') !== undefined,
    convert(sound, format, signal) {
      if (find('ffmpeg') === undefined)
        throw new AppError('unavailable', `ffmpeg is not installed on this machine, and the provider does not make ${format}`);
      const argv = [
        'ffmpeg',
        '-hide_banner',
        '-loglevel',
        'error',
        '-i',
        'pipe:0',
        '-vn',
        '-map_metadata',
        '-1',
        ...encoders[format],
        'pipe:1',
      ] as const;
      return run([...argv], sound, convertMs, signal);
    },
  };
}

/** A WAV file that was written into a pipe does not know its length. */
function withLength(wav: Buffer): Buffer {
  const at = wav.indexOf('data', 12, 'latin1');
  if (wav.toString('latin1', 0, 4) !== 'RIFF' || at === -1 || at + 8 > wav.length) return wav;
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.writeUInt32LE(wav.length - at - 8, at + 4);
  return wav;
}
